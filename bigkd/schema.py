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

DISTANCE: dict[str, Variable] = {
    "distance": Variable((), "kernel distance, the root of max(distance_squared, 0)"),
    "distance_lower": Variable((), "least distance that the promise leaves"),
    "distance_upper": Variable((), "largest distance that the promise leaves"),
    "distance_squared": Variable((), "squared kernel distance"),
    "promise": Variable((), "bound of the error of distance_squared"),
    "relative_promise": Variable((), "promise over |distance_squared|"),
    "standard_error": Variable((), "standard error of distance_squared over the frequencies"),
    "negative": Variable((), "whether distance_squared is negative, so that distance is 0"),
    "kappa_xx": Variable((), "kernel summed over pairs of x and x"),
    "kappa_yy": Variable((), "kernel summed over pairs of y and y"),
    "kappa_xy": Variable((), "kernel summed over pairs of x and y"),
}

UNBIASED: dict[str, Variable] = {
    "mmd2": Variable((), "squared maximum mean discrepancy, unbiased; can be negative"),
    "mmd2_biased": Variable((), "squared maximum mean discrepancy, biased (V-statistic)"),
    "promise": Variable((), "bound of the error of mmd2 as a number of these rows"),
    "standard_error": Variable((), "standard error of mmd2 over the frequencies"),
}

TWO_SAMPLE: dict[str, Variable] = {
    "p_value": Variable((), "probability of so large a statistic if both came from one source"),
    "statistic": Variable((), "squared maximum mean discrepancy, biased (V-statistic)"),
    "null_mean": Variable((), "mean of the statistic over permutations"),
    "null_std": Variable((), "standard deviation of the statistic over permutations"),
    "null_quantile": Variable((), "the 1 - alpha quantile of the statistic over permutations"),
    "rejected": Variable((), "whether p_value is at most alpha"),
}

DISTANCES: dict[str, Variable] = {
    "distance": Variable(("x", "y"), "kernel distance, the root of max(distance_squared, 0)"),
    "distance_squared": Variable(("x", "y"), "squared kernel distance"),
    "promise": Variable(("x", "y"), "bound of the error of each distance_squared"),
    "standard_error": Variable(
        ("x", "y"), "standard error of distance_squared over the frequencies"
    ),
    "kappa": Variable(("x", "y"), "kernel summed over pairs"),
    "n_rows": Variable(("x",), "number of rows"),
}

ENTROPIES: dict[str, Variable] = {
    "vendi": Variable((), "exponential of the order-1 kernel entropy: effective number of modes"),
    "rke": Variable((), "exponential of the order-2 kernel entropy: effective number of modes"),
    "entropy_1": Variable((), "order-1 (von Neumann) kernel entropy", "nat"),
    "entropy_2": Variable((), "order-2 (Rényi) kernel entropy", "nat"),
}

CORESET: dict[str, Variable] = {
    "index": Variable(("point",), "row number of the point in the collection"),
    "weight": Variable(("point",), "weight of the point; they sum to total_weight"),
    "count": Variable(("point",), "how often the row was drawn"),
    "rows": Variable(("point", "feature"), "the row itself", "units of x"),
    "total_weight": Variable((), "sum of the weights of the collection"),
    "distance_to_full": Variable(
        (), "kernel distance of coreset and collection, each of total weight 1, as measured"
    ),
    "distance_squared": Variable((), "square of distance_to_full"),
    "standard_error": Variable((), "standard error of distance_squared over the frequencies"),
    "distance_upper": Variable((), "largest distance that the promise leaves"),
    "rank_error": Variable(
        (), "largest difference of the distribution functions, as a share of total_weight"
    ),
    "density_error": Variable(
        (), "bound of the difference of kernel densities anywhere, over the kernel's maximum"
    ),
}

SHAPE: dict[str, Variable] = {
    "point": Variable(
        ("element", "axis"), "centre of the element, or a random point", "units of x"
    ),
    "weight": Variable(("element",), "length or area that the point stands for", "units of x^k"),
    "vector": Variable(
        ("element", "component"),
        "unit tangent or normal; of a varifold its outer product, as a unit vector",
    ),
    "corner": Variable(
        ("element", "corner", "axis"), "ends of the segment, corners of the triangle", "units of x"
    ),
}

DISCRETISATION: dict[str, Variable] = {
    "kappa_xx": Variable((), "largest error of kappa(x, x)", "units of weight^2"),
    "kappa_yy": Variable((), "largest error of kappa(y, y)", "units of weight^2"),
    "kappa_xy": Variable((), "largest error of kappa(x, y)", "units of weight^2"),
    "distance": Variable((), "largest error of the distance", "units of weight"),
    "distance_squared": Variable((), "largest error of its square", "units of weight^2"),
}

DISSIMILARITY: dict[str, Variable] = {
    "dissimilarity": Variable(("lam",), "dissimilarity of g from smooth deformations of f"),
    "rounding": Variable(("lam",), "bound of its rounding error, the maps being given"),
    "norm_reference": Variable((), "operator norm of the map of f, masked"),
    "norm_searched": Variable((), "operator norm of the map of g"),
    "lower": Variable(("lam",), "least dissimilarity that the kernels themselves may have"),
    "upper": Variable(("lam",), "largest dissimilarity that the kernels themselves may have"),
    "lost_reference": Variable((), "bound of what the landmarks leave out of the map of f"),
    "lost_searched": Variable((), "bound of what the landmarks leave out of the map of g"),
}

DISSIMILARITIES: dict[str, Variable] = {
    "dissimilarity": Variable(
        ("lam", "reference", "searched"), "dissimilarity of each datum from each reference"
    ),
}

MATCH: dict[str, Variable] = {
    "dissimilarity": Variable((), "dissimilarity of g from smooth deformations of f"),
    "h": Variable(("grid",), "function on f's domain that g can reproduce least, of norm 1"),
    "q": Variable(("grid",), "function on g's domain that comes nearest to it"),
}

NEAREST: dict[str, Variable] = {
    "index": Variable(("query", "rank"), "number of the datum, nearest first; -1 where none is"),
    "dissimilarity": Variable(("query", "rank"), "its dissimilarity"),
}

SUBSPACE: dict[str, Variable] = {
    "component": Variable(("k", "feature"), "eigenvector of H_f, of length 1", "1"),
    "eigenvalue": Variable(("k",), "eigenvalue of H_f, largest first"),
    "explained_share": Variable(("k",), "eigenvalue over the trace of H_f"),
    "mean": Variable(("feature",), "mean row, taken from rows before they are projected"),
    "weight": Variable(("feature",), "weight of the feature in inner products; their mean is 1"),
    "trace": Variable((), "trace of H_f, the mean of K over pairs of rows"),
    "mmd2": Variable((), "squared MMD between the rows and their projections"),
    "mmd2_standard_error": Variable((), "standard error of mmd2 over the rows that were drawn"),
    "mmd2_pca": Variable((), "squared MMD between the rows and their projections by PCA"),
    "pca_sine": Variable((), "sine of the largest angle to the subspace of PCA"),
    "mmd2_lower": Variable((), "least squared MMD to any distribution in k dimensions (Theorem 9)"),
    "mmd2_upper": Variable((), "upper bound of that (Theorems 10 and 11); NaN where there is none"),
    "subspace_error": Variable((), "estimated sine of the angle to the exact subspace"),
}

SCORE: dict[str, Variable] = {
    "score": Variable(("sample", "k"), "coordinate of the row along the component", "units of x"),
}

PROJECTION: dict[str, Variable] = {
    "mmd2": Variable((), "squared MMD between the rows and their projections"),
    "mmd2_standard_error": Variable((), "standard error of mmd2 over the rows that were drawn"),
    "mmd": Variable((), "root of mmd2"),
    "trace": Variable((), "mean of K over pairs of rows"),
    "left_out": Variable((), "mean of r_x . r_y H over pairs, r what the projection leaves"),
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


def variables(
    schema: Mapping[str, Variable], values: Mapping[str, Any], dims: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """`values` as variables of a Dataset, described by `schema`, over `dims` if they are given."""
    return {
        name: (
            schema[name].dims if dims is None else dims,
            np.asarray(value),
            {"long_name": schema[name].long_name, "units": schema[name].units},
        )
        for name, value in values.items()
    }
