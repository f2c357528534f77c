"""A kernel on the command line: its name and parameters, with colons between them."""

from dataclasses import fields
from typing import Any

from bigkd.errors import InputError
from bigkd.jobs.explain import suggestion
from bigkd.jobs.kernels import KERNELS, RULES
from bigkd.kernels import CovarianceGaussian, Kernel, Polynomial, RadialKernel

_NAMES = [name for name in KERNELS if name != CovarianceGaussian.name]


def parse_kernel(
    text: str,
    factor: float | None,
    *,
    option: str = "--kernel",
    rules: tuple[str, ...] = RULES,
) -> dict[str, Any]:
    """The mapping that a job file would hold for `text`, which was given as `option`.

    Raises
    ------
    InputError
        If `text` is not one of `rules`, or a kernel with its parameters.

    Examples
    --------
    >>> parse_kernel("matern:1.5:median", 0.3)
    {'name': 'matern', 'nu': 1.5, 'bandwidth': 'median', 'factor': 0.3}
    >>> parse_kernel("polynomial:0,1", None)
    {'name': 'polynomial', 'coefficients': [0.0, 1.0]}
    """
    if text in rules:
        text = f"gaussian:{text}"
    name, *given = text.split(":")
    if name == CovarianceGaussian.name:
        raise InputError(f"{option} {name} needs a matrix; write it in a job file.")
    if name not in _NAMES:
        known = ", ".join(
            [*rules, f"or one of {', '.join(_NAMES)}" if rules else ", ".join(_NAMES)]
        )
        raise InputError(
            f"{option} must be {known} with its parameters; got {text!r}."
            f"{suggestion(name, [*rules, *_NAMES])}"
        )
    family = KERNELS[name].family
    try:
        data = _parameters(family, given, text, rules)
    except InputError as error:
        raise InputError(f"{option} {error}") from error
    if factor is not None:
        data["factor"] = factor
    return data


def _parameters(
    family: type[Kernel], given: list[str], text: str, rules: tuple[str, ...]
) -> dict[str, Any]:
    if issubclass(family, RadialKernel):
        return _with_length(family, given, text, rules)
    return _polynomial(given, text)


def _with_length(
    family: type[RadialKernel], given: list[str], text: str, rules: tuple[str, ...]
) -> dict[str, Any]:
    name = family.name
    names = [field.name for field in fields(family)]
    if len(given) != len(names):
        stand_in = f" {' or '.join(rules)} may stand for {family.length_name.upper()}."
        raise InputError(
            f"{name} needs {name}:{':'.join(parameter.upper() for parameter in names)}; "
            f"got {text!r}.{stand_in if rules else ''}"
        )
    data: dict[str, Any] = {"name": name}
    for parameter, value in zip(names, given, strict=True):
        if parameter == family.length_name and value in rules:
            data["bandwidth"] = value
        else:
            data[parameter] = _number(parameter, value, text)
    return data


def _polynomial(given: list[str], text: str) -> dict[str, Any]:
    if len(given) != 1:
        raise InputError(
            f"polynomial needs polynomial:C0,C1,..., the coefficients from the constant "
            f"on; got {text!r}."
        )
    values = [_number("each coefficient", value, text) for value in given[0].split(",")]
    return {"name": Polynomial.name, "coefficients": values}


def _number(parameter: str, value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise InputError(f"{text}: {parameter} must be a number; got {value!r}.") from error
