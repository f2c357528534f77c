"""A kernel on the command line: its name and parameters, with colons between them."""

from dataclasses import fields
from typing import Any

from bigkd.errors import InputError
from bigkd.jobs.explain import suggestion
from bigkd.jobs.kernels import KERNELS, RULES


def parse_kernel(text: str, factor: float | None) -> dict[str, Any]:
    """The mapping that a job file would hold for `text`.

    Raises
    ------
    InputError
        If `text` is not ``auto``, ``median``, or a kernel with its parameters.

    Examples
    --------
    >>> parse_kernel("matern:1.5:median", 0.3)
    {'name': 'matern', 'nu': 1.5, 'bandwidth': 'median', 'factor': 0.3}
    """
    if text in RULES:
        text = f"gaussian:{text}"
    name, *given = text.split(":")
    if name not in KERNELS:
        raise InputError(
            f"--kernel must be auto, median, or one of {', '.join(KERNELS)} with its parameters; "
            f"got {text!r}.{suggestion(name, [*RULES, *KERNELS])}"
        )
    family = KERNELS[name].family
    names = [field.name for field in fields(family)]
    if len(given) != len(names):
        raise InputError(
            f"--kernel {name} needs {name}:{':'.join(parameter.upper() for parameter in names)}; "
            f"got {text!r}. auto or median may stand for {family.length_name.upper()}."
        )
    data: dict[str, Any] = {"name": name}
    for parameter, value in zip(names, given, strict=True):
        if parameter == family.length_name and value in RULES:
            data["bandwidth"] = value
        else:
            data[parameter] = _number(parameter, value, text)
    if factor is not None:
        data["factor"] = factor
    return data


def _number(parameter: str, value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise InputError(
            f"--kernel {text}: {parameter} must be a number; got {value!r}."
        ) from error
