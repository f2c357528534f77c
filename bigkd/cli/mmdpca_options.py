"""Options of the commands of `bigkd.mmdpca`, made from the fields of the job file's models."""

from collections.abc import Mapping
from typing import Any

import click

from bigkd.cli.kernels import parse_kernel
from bigkd.cli.options import option, options, together
from bigkd.errors import InputError
from bigkd.jobs.comparisons import MmdpcaBackgroundPart, MmdpcaDistancePart, MmdpcaPart
from bigkd.jobs.explain import suggestion
from bigkd.jobs.kernels import KERNELS
from bigkd.kernels import CovarianceGaussian
from bigkd.mmdpca.kernels import NAMES

_MOMENTS = "moments"
_WITH_PARAMETERS = [_MOMENTS, *(name for name in KERNELS if name != CovarianceGaussian.name)]


def given_tempered(given: Mapping[str, Any]) -> dict[str, Any]:
    """The kernel among the options `given`, as a job file would hold it.

    Raises
    ------
    InputError
        If there is none of the name, or its parameters are others.

    Examples
    --------
    >>> given_tempered({"kernel": "moments:0,1"})
    {'kernel': {'name': 'higher_moments', 'weights': [0.0, 1.0]}}
    """
    text = given.get("kernel")
    if text is None:
        return {}
    if text in NAMES:
        return {"kernel": text}
    name, _, rest = text.partition(":")
    if name == _MOMENTS:
        return {"kernel": {"name": "higher_moments", "weights": _numbers(rest, text)}}
    if name not in _WITH_PARAMETERS:
        raise InputError(
            f"--kernel must be {', '.join(NAMES)}, or one of {', '.join(_WITH_PARAMETERS)} with "
            f"its parameters; got {text!r}.{suggestion(name, [*NAMES, *_WITH_PARAMETERS])}"
        )
    return {"kernel": parse_kernel(text, None, rules=())}


def _numbers(rest: str, text: str) -> list[float]:
    try:
        return [float(part) for part in rest.split(",")]
    except ValueError as error:
        raise InputError(
            f"--kernel moments needs moments:W1,W2,..., a number for each order from 1 on, such "
            f"as moments:0,1, which is PCA; got {text!r}."
        ) from error


_subspace_options = together(
    click.option(
        "--kernel",
        metavar="NAME[:PARAMETERS]",
        help="Kernel: gauss, laplace or poisson, of scale --a; kurtosis; moments:0,1 (a number for "
        "each order from 1 on; this is PCA); or one with a length in the units of the data: "
        "gaussian:2.5, laplace:1, matern:1.5:2.0 (nu, length).  [default: gauss]",
    ),
    options(MmdpcaPart, "a", "center"),
    option(MmdpcaPart, "weights", metavar="none|coslat|FILE.npy"),
    options(MmdpcaPart, "method", "n_landmarks", "n_frequencies", "n_directions"),
)

mmdpca_options = together(
    options(MmdpcaPart, "k"), _subspace_options, options(MmdpcaPart, "n_points", "mmd", "seed")
)

mmdpca_distance_options = options(MmdpcaDistancePart, "method", "n_points", "seed")

mmdpca_background_options = together(
    options(MmdpcaBackgroundPart, "k"),
    _subspace_options,
    options(MmdpcaBackgroundPart, "statistic", "white", "seed"),
)

dim_option = option(MmdpcaPart, "dim")
