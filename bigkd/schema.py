"""Every variable that a result may hold: its dimensions, units and meaning."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bigkd import __version__


class Variable(NamedTuple):
    """What a variable is."""

    dims: tuple[str, ...]
    long_name: str
    units: str = "1"


MODES: dict[str, Variable] = {
    "eigenvalue": Variable(
        ("mode",), "excess frequency: eigenvalue of C_test - rho C_reference, largest first"
    ),
    "standard_error": Variable(("mode",), "standard error of the eigenvalue over blocks of rows"),
    "p_value": Variable(
        ("mode",), "share of noise spectra whose largest eigenvalue reaches this one"
    ),
    "significant": Variable(("mode",), "whether p_value is at most alpha"),
    "frequency_test": Variable(("mode",), "frequency of the mode in the test set, u.C_test u"),
    "frequency_reference": Variable(
        ("mode",), "frequency of the mode in the reference set, u.C_reference u"
    ),
    "mode_vector": Variable(("mode", "feature"), "unit eigenvector u in the space of features"),
    "fourier_frequency": Variable(
        ("fourier", "column"), "frequencies w of the features cos(w.x), sin(w.x)", "1 / units of x"
    ),
    "top_index_test": Variable(("mode", "rank"), "row numbers of the top rows of the test set"),
    "top_score_test": Variable(("mode", "rank"), "scores of the top rows of the test set"),
    "top_index_reference": Variable(("mode", "rank"), "row numbers of the reference's top rows"),
    "top_score_reference": Variable(("mode", "rank"), "scores of the reference's top rows"),
    "heterogeneity": Variable(
        ("mode",), "trace of the covariance of the mode's top rows in the test set", "units of x^2"
    ),
    "noise_level": Variable((), "eigenvalue that noise alone reaches with probability alpha"),
    "mmd2": Variable((), "squared maximum mean discrepancy of the two sets, biased (V-statistic)"),
    "mmd2_unbiased": Variable(
        (), "squared maximum mean discrepancy, unbiased (U-statistic); can be negative"
    ),
    "mmd2_standard_error": Variable((), "standard error of mmd2 over the random frequencies"),
}

COMPARISON: dict[str, Variable] = {
    "eigenvalue": Variable(
        ("test", "reference", "mode"),
        "excess frequency of the test set's modes over the reference, largest first",
    ),
    "standard_error": Variable(
        ("test", "reference", "mode"), "standard error of the eigenvalue over blocks of rows"
    ),
    "p_value": Variable(
        ("test", "reference", "mode"), "share of noise spectra whose top eigenvalue reaches this"
    ),
    "significant": Variable(("test", "reference", "mode"), "whether p_value is at most alpha"),
    "frequency_test": Variable(("test", "reference", "mode"), "frequency in the test set"),
    "frequency_reference": Variable(("test", "reference", "mode"), "frequency in the reference"),
    "mmd2": Variable(("test", "reference"), "squared maximum mean discrepancy, biased"),
    "mmd2_unbiased": Variable(
        ("test", "reference"), "squared maximum mean discrepancy, unbiased; can be negative"
    ),
    "mmd2_standard_error": Variable(
        ("test", "reference"), "standard error of mmd2 over the random frequencies"
    ),
    "n_rows": Variable(("test",), "number of rows"),
}

ENTROPIES: dict[str, Variable] = {
    "vendi": Variable((), "exponential of the order-1 kernel entropy: effective number of modes"),
    "rke": Variable((), "exponential of the order-2 kernel entropy: effective number of modes"),
    "entropy_1": Variable((), "order-1 (von Neumann) kernel entropy", "nat"),
    "entropy_2": Variable((), "order-2 (Rényi) kernel entropy", "nat"),
}


def dataset(
    schema: Mapping[str, Variable],
    values: Mapping[str, Any],
    *,
    attrs: Mapping[str, Any],
    coords: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Dataset of `values`, each with the dimensions, units and long name of `schema`.

    `attrs` record every choice; the version of bigkd is added, and no date, so that equal inputs
    give equal files.
    """
    return xr.Dataset(
        variables(schema, values), coords=coords, attrs={**attrs, "bigkd_version": __version__}
    )


def variables(schema: Mapping[str, Variable], values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` as variables of a Dataset, described by `schema`."""
    return {
        name: (
            schema[name].dims,
            np.asarray(value),
            {"long_name": schema[name].long_name, "units": schema[name].units},
        )
        for name, value in values.items()
    }
