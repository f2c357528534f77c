"""Options of the commands of `bigkd.did`, made from the fields of the job file's models."""

from typing import Any

import click

from bigkd.cli.kernels import parse_kernel
from bigkd.cli.options import Decorator, image_size_option, option, options, together
from bigkd.jobs.comparisons import DidMatrixPart, DidNearestPart, DidPart
from bigkd.jobs.data import DatumPart
from bigkd.jobs.rows import RowsPart

KERNELS = ("x_kernel", "y_kernel")


def given_kernels(given: dict[str, Any]) -> dict[str, Any]:
    """The kernels among the options `given`, as a job file would hold them."""
    return {
        name: parse_kernel(given[name], None, option=f"--{name.replace('_', '-')}", rules=())
        for name in KERNELS
        if given.get(name) is not None
    }


def _lams(text: str) -> Any:
    """Numbers between commas, or what the job file's model is to refuse."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    return found[0] if len(found) == 1 else found


def _kernel_option(name: str, default: str) -> Decorator:
    words = DidPart.model_fields[name].description or ""
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        metavar="NAME:PARAMETERS",
        help=f"{words[:1].upper()}{words[1:]}: gaussian:0.1, laplace:0.2, matern:1.5:0.3 (nu, "
        f"length), inverse_multiquadric:1:0.5 (length, beta).  [default: {default}]",
    )


_representation_options = together(
    _kernel_option("x_kernel", "gaussian:1/6"),
    _kernel_option("y_kernel", "laplace:0.2"),
    option(DidPart, "mask", metavar="blackman|none|FILE.npy"),
    option(DidPart, "x_landmarks", metavar="N|KIND:N|FILE.npy"),
    option(DidPart, "y_landmarks", metavar="N|KIND:N|FILE.npy"),
    option(DidPart, "normalize"),
    option(DidPart, "weights", metavar="none|coslat|FILE.npy"),
    options(DidPart, "nan", "dims", "value_dim", "dtype", "jitter", "seed"),
)

_several_options = together(
    option(DidPart, "lam", kind=_lams, metavar="NUMBER,...|rate"),
    options(DidPart, "relative", "scale"),
)

did_options = together(
    _several_options,
    options(DidPart, "promise"),
    *(option(DatumPart, "row", name=f"{role}_row") for role in "fg"),
    image_size_option,
    options(RowsPart, "missing"),
    _representation_options,
)

did_matrix_options = together(
    _several_options, _representation_options, options(DidMatrixPart, "dim")
)

did_nearest_options = together(
    options(DidNearestPart, "k"),
    option(DidNearestPart, "lam", kind=_lams, metavar="NUMBER|rate"),
    options(DidNearestPart, "relative", "scale"),
    option(DatumPart, "row", name="query_row"),
    _representation_options,
    options(DidNearestPart, "dim"),
)
