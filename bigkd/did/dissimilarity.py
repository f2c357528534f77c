"""`dissimilarity`: one datum against another; `match`: what of one was found in the other."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import xarray as xr

from bigkd.backends import to_host
from bigkd.did.choice import (
    Choice,
    Representation,
    Scale,
    Strength,
    representation_of,
    strength_of,
)
from bigkd.did.layout import Layout, open_datum
from bigkd.did.maps import REFERENCE, SEARCHED
from bigkd.did.pairs import PairMeasure
from bigkd.did.pictures import match_sheet
from bigkd.did.promise import Projection, bounds, projection
from bigkd.did.setting import Setting, choose
from bigkd.engine import Settings, open_session
from bigkd.errors import DataError, InputError
from bigkd.linalg import Matrix, best_functions, factored
from bigkd.schema import DISSIMILARITY, MATCH, dataset, variables


class _Pair(NamedTuple):
    """Two data, mapped."""

    setting: Setting
    reference: Matrix  # A, (M_Y, M_X)
    searched: Matrix  # B
    data: tuple[Matrix, Matrix]  # f and g, flat


def dissimilarity(
    f: Any,
    g: Any,
    *,
    lam: Any = 1e-2,
    relative: bool = False,
    scale: Scale = "paper",
    promise: bool = False,
    **representation: Unpack[Representation],
) -> xr.Dataset:
    r"""How far g is from every smooth deformation of f. Computes.

    Parameters
    ----------
    f
        The reference, masked: an image ``(y, x, channel)``, a series ``(time, variable)`` or a
        field on any grid, as an `xarray.DataArray`, a Dataset whose variables are the values, an
        array (see `dims`), or the path of a picture. Colours lie in [0, 1], or are bytes.
    g
        What is searched for it, on the same grid.
    lam
        Regularisation: a positive number, several (they share nearly all of the work), or
        ``"rate"`` for ``N**(-1/4)`` of N positions (Section 4.2). Small values tell more apart.
    relative
        Whether `lam` counts in units of ``|B|**2``, the squared norm of g's map.
    scale
        ``"paper"``: Eqs. 10 to 12 as they stand; ``"unit"``: both maps divided by their norms, so
        that one `lam` means the same for all data.
    promise
        Whether to bound what the landmarks change: a sum over all pairs of positions; everything
        is computed in float64 then.
    **representation
        Kernels, landmarks, mask and units: `bigkd.did.Representation`.

    Returns
    -------
    xarray.Dataset
        Over ``lam``: ``dissimilarity``, ``rounding`` (a bound of its error in the last step);
        ``norm_reference`` and ``norm_searched``, the norms |A| and |B|. NaN where no position of f
        or g counts, or no value is near a landmark. With `promise`, over
        ``lam``: ``lower`` and ``upper``, between which the dissimilarity of the kernels themselves
        lies (in unit scale, in units of the same norms); ``lost_reference`` and ``lost_searched``,
        bounds of what the landmarks leave out of both maps. Landmarks far apart, for kernels so
        narrow, leave wide bounds: D is then that of wider kernels, and as invariant.

    Raises
    ------
    InputError
        If an argument cannot be used, or f and g do not share a grid.
    DataError
        If values are not finite and `nan` is ``"raise"``, or not colours where they should be.

    Notes
    -----
    With the maps A of f (masked by mu) and B of g on landmarks (Eqs. 10 and 11),

    .. math:: D = \max_{|h| \le 1} \min_q |A h - B q|^2 + \lambda |q|^2
              = \lambda \, \| A^T (B B^T + \lambda I)^{-1} A \|

    It is not symmetric, lies between 0 and ``|A|**2``, does not decrease in `lam`, and is at most
    of the order of `lam` where g is a smooth deformation of f (Theorem 3.2). It is that of kernels
    projected on the landmarks. Cost: ``N M_Y`` kernel values and ``M_Y**2 M_X`` multiply-adds for
    each of both maps; of the `promise`, ``N**2`` values of each kernel.

    References
    ----------
    Cantelobre, Ciliberto, Guedj and Rudi, "Measuring dissimilarity with diffeomorphism invariance",
    2022.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import did
    >>> t = np.linspace(0, 1, 50)
    >>> wave, later = np.sin(9 * t**2), np.sin(9 * (t - 0.05 * np.sin(np.pi * t)) ** 2)
    >>> found = did.dissimilarity(wave, later, lam=[1e-4, 1e-3], dims=("time",))
    >>> bool((found["dissimilarity"].diff("lam") > 0).all())
    True
    """
    choice = representation_of(representation)
    if promise:  # a bound has no use for rounding errors
        choice = replace(choice, dtype="float64")
    pair = _mapped(f, g, choice)
    strength = strength_of(
        lam, relative=relative, scale=scale, n_points=pair.setting.layout.n_points
    )
    reference, searched = (factored(part[None, ...]) for part in (pair.reference, pair.searched))
    found = PairMeasure.of(strength, pair.setting.maps)(reference, searched)
    value, rounding = (part[:, 0, 0] for part in found)
    result = dataset(
        DISSIMILARITY,
        {
            "dissimilarity": value,
            "rounding": rounding,
            "norm_reference": reference.strength[0, 0],
            "norm_searched": searched.strength[0, 0],
        },
        attrs={**pair.setting.attrs, **strength.attrs},
        coords={"lam": list(strength.lams)},
    )
    return result.assign(_promised(pair, strength, value, rounding)) if promise else result


def match(
    f: Any,
    g: Any,
    *,
    lam: float = 1e-2,
    relative: bool = False,
    scale: Scale = "paper",
    path: str | Path | None = None,
    **representation: Unpack[Representation],
) -> xr.Dataset:
    """What of f is hardest to find in g, and where it was found. Computes.

    Parameters
    ----------
    f, g, relative, scale, **representation
        As for `dissimilarity`.
    lam
        One number, or ``"rate"``.
    path
        Picture to write, of f, h, g and q side by side: ``.png``; for images only.

    Returns
    -------
    xarray.Dataset
        On the grid: ``h``, the function on f's domain that attains the maximum, of norm 1, and
        ``q``, the function on g's domain that matches it best (Appendix E); ``dissimilarity``.
        The sign of h is such that its largest value is positive.

    Raises
    ------
    BigkdError
        As `dissimilarity`.
    MissingDependencyError
        If there is a `path` and Pillow is not installed: ``pip install 'bigkd[images]'``.
    """
    choice = representation_of(representation)
    pair = _mapped(f, g, choice)
    layout = pair.setting.layout
    strength = strength_of(lam, relative=relative, scale=scale, n_points=layout.n_points)
    if len(strength.lams) != 1:
        raise InputError(f"lam must be one number for a match; got {lam!r}.")
    a, b = pair.reference, pair.searched
    largest = [float(np.linalg.norm(part, 2)) for part in (a, b)]
    if min(largest) == 0.0:
        raise DataError("no position counts, or no value is near a landmark: nothing to match.")
    if scale == "unit":
        a, b = a / largest[0], b / largest[1]
    number = strength.lams[0] * (np.linalg.norm(b, 2) ** 2 if relative else 1.0)
    best = best_functions(a, b, float(number))
    h, q = (_on_grid(pair.setting, part) for part in (best.h, best.q))
    sign = 1.0 if h.flat[np.argmax(np.abs(h))] > 0 else -1.0
    result = dataset(
        MATCH,
        {"dissimilarity": best.value},
        attrs={**pair.setting.attrs, **strength.attrs, "lam": strength.lams[0]},
        coords=layout.coords(),
    )
    functions = variables(MATCH, {"h": sign * h, "q": sign * q}, dims=layout.dims)
    result = result.assign(functions)
    if path is not None:
        match_sheet(
            path,
            _picture(pair.data[0], layout),
            _picture(pair.data[1], layout),
            result["h"].values,
            result["q"].values,
        )
    return result


def _promised(pair: _Pair, strength: Strength, value: Matrix, rounding: Matrix) -> dict[str, Any]:
    """Bounds of the dissimilarity without landmarks, as variables."""
    setting, lams = pair.setting, np.asarray(strength.lams)
    maps = pair.reference, pair.searched
    lost = [
        projection(
            setting.maps, datum, side, own, x_kernel=setting.x_kernel, x=setting.layout.positions()
        )
        for datum, side, own in zip(pair.data, (REFERENCE, SEARCHED), maps, strict=True)
    ]
    norms = [float(np.linalg.norm(own, 2)) or np.nan for own in maps]
    if strength.relative and strength.scale == "paper":
        lams = lams * norms[1] ** 2
    if strength.scale == "unit":
        lost = [
            Projection(*(part / norm for part in one))
            for one, norm in zip(lost, norms, strict=True)
        ]
    between = bounds(value, rounding, lams, *lost)
    return variables(
        DISSIMILARITY,
        {
            "lower": between.lower,
            "upper": between.upper,
            "lost_reference": lost[0].error,
            "lost_searched": lost[1].error,
        },
    )


def _mapped(f: Any, g: Any, choice: Choice) -> _Pair:
    how: dict[str, Any] = {"dims": choice.dims, "value_dim": choice.value_dim}
    first = open_datum(f, name="f", **how)
    given = [first, open_datum(g, name="g", like=first.layout, **how)]
    with open_session(Settings(scheduler="sync")):  # BLAS on one thread, as in passes
        setting = choose(given, ("f", "g"), choice)
        data = tuple(to_host(one.source.read(0)) for one in given)
        for rows, name in zip(data, ("f", "g"), strict=True):
            _require_finite(rows, name, choice)
        sides = zip(data, (REFERENCE, SEARCHED), strict=True)
        a, b = (setting.maps(rows, (at,))[0, 0, ...] for rows, at in sides)
    return _Pair(setting, a, b, (data[0][0, ...], data[1][0, ...]))


def _require_finite(rows: Any, name: str, choice: Choice) -> None:
    lost = int(np.sum(~np.isfinite(rows))) if choice.nan == "raise" else 0
    if lost:
        raise DataError(
            f"{name} has {lost} values that are not finite; expected finite numbers. Pass "
            f"nan='zero_weight' to give such points no weight, or mend the data."
        )


def _on_grid(setting: Setting, coefficients: Matrix) -> Matrix:
    """Values on the grid of a function of norm ``|coefficients|`` (Appendix E)."""
    values = setting.maps.x_inverse @ coefficients
    factors = setting.maps.x_factors
    values = values.reshape([factor.shape[1] for factor in factors])
    for factor in factors:  # each contracts the first axis and puts its own last
        values = np.tensordot(values, factor, axes=([0], [1]))
    return np.asarray(values.reshape(setting.layout.shape))


def _picture(datum: Matrix, layout: Layout) -> Matrix:
    """A flat datum in the shape of its grid, with its values last."""
    values = () if layout.value_dim is None else (layout.n_values,)
    return np.asarray(datum.reshape(*layout.shape, *values))
