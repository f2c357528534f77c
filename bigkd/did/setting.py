"""Everything that is chosen before a datum is mapped: grid, landmarks, scaling, weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from bigkd.backends import compute_dtype, rng
from bigkd.did.choice import Choice, kernel_text
from bigkd.did.landmarks import Landmarks, Wanted, of_positions, of_values, wanted
from bigkd.did.layout import Layout, Opened, require_same_grid, same_labels
from bigkd.did.maps import ImageMaps, gain_of, whitened_values
from bigkd.did.masks import mask_of
from bigkd.did.scaling import Scaling, choose_scaling
from bigkd.engine import Settings, settings_of
from bigkd.errors import InputError
from bigkd.io import Source, sample
from bigkd.kernels import Gaussian, Kernel
from bigkd.linalg import Matrix, whitening

_SAMPLED_DATA = 16
_SAMPLED_POINTS = 20_000
_STREAM = 0x73657474  # keeps these numbers apart from other uses of a seed
_LARGEST_GAIN = 1e5
_LATITUDES = ("lat", "latitude")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Collections of one kind, and how their data are mapped.

    Attributes
    ----------
    layout
        Grid and values of one datum.
    maps
        The map of a datum.
    x_kernel
        Kernel of positions.
    attrs
        Every choice, for the result.
    """

    layout: Layout
    maps: ImageMaps
    x_kernel: Kernel
    attrs: dict[str, Any]


def choose(collections: Sequence[Opened], names: Sequence[str], choice: Choice) -> Setting:
    """Landmarks, scaling and weights for `collections`, which share a grid.

    Raises
    ------
    InputError
        If they do not, a kernel is not positive definite, or a mask or weights do not fit.
    DataError
        If values cannot be normalised as asked.
    """
    layout = collections[0].layout
    for other, name in zip(collections[1:], names[1:], strict=True):
        require_same_grid(layout, other.layout, (names[0], name))
    x_kernel = choice.x_kernel
    for kernel, width, what in (
        (x_kernel, len(layout.shape), "x_kernel"),
        (choice.y_kernel, layout.n_values, "y_kernel"),
    ):
        if not kernel.is_positive_definite(width):
            raise InputError(
                f"{what}={kernel!r} is not positive definite in {width} dimensions; use "
                f"Gaussian, Laplace or Matern."
            )
    sources = [opened.source for opened in collections]
    scaling, samples = _scaling(sources, layout, choice)
    positions = of_positions(choice.x_landmarks, layout.axes, x_kernel, seed=choice.seed)
    values = _values(choice, scaling, samples)
    x_white = whitening(x_kernel(positions.points, positions.points), jitter=choice.jitter)
    y_white = whitened_values(choice.y_kernel, values.points, choice.jitter)
    x_inverse = np.asarray(np.linalg.inv(x_white.upper), dtype=np.float64)
    maps = ImageMaps(
        x_factors=_factors(x_kernel, layout, positions),
        x_inverse=x_inverse,
        y_kernel=choice.y_kernel,
        y_landmarks=values.points,
        y_jitter=y_white.jitter,
        mean=scaling.mean,
        std=scaling.std,
        limits=_limits(scaling),
        weights=_weights(choice, layout),
        zero_weight=choice.nan == "zero_weight",
        dtype=_dtype(sources, choice, gain_of(x_inverse) * y_white.gain),
    )
    attrs = {
        "grid": grid_text(layout),
        "x_kernel": kernel_text(x_kernel),
        "y_kernel": kernel_text(choice.y_kernel),
        "x_landmarks": positions.about,
        "y_landmarks": values.about,
        "x_jitter": x_white.jitter,
        "y_jitter": y_white.jitter,
        "normalize": scaling.rule,
        "value_mean": scaling.mean.tolist(),
        "value_std": scaling.std.tolist(),
        "value_low": scaling.low.tolist(),
        "value_high": scaling.high.tolist(),
        "mask": choice.mask if isinstance(choice.mask, str) else _told(choice.mask),
        "weights": choice.weights if isinstance(choice.weights, str) else _told(choice.weights),
        "nan": choice.nan,
        "dtype": maps.dtype,
        "seed": choice.seed,
    }
    return Setting(layout=layout, maps=maps, x_kernel=x_kernel, attrs=attrs)


def grid_text(layout: Layout) -> str:
    """The grid in words, such as ``"y 100, x 100, channel 3"``."""
    axes = [f"{dim} {n}" for dim, n in zip(layout.dims, layout.shape, strict=True)]
    return ", ".join([*axes, f"{layout.value_dim or 'value'} {layout.n_values}"])


def _told(given: Any) -> str:
    return "none" if given is None else "given"


def _scaling(
    sources: Sequence[Source], layout: Layout, choice: Choice
) -> tuple[Scaling, list[Matrix]]:
    """Scaling, and sampled values as they are, where any were needed."""
    p, kinds = layout.n_values, [source.dtype for source in sources]
    if len({kind == np.uint8 for kind in kinds}) > 1:
        raise InputError(
            f"some of the data are bytes and others not ({', '.join(map(str, kinds))}); pass all "
            f"as bytes (0 to 255), or all as floating numbers."
        )
    chosen = wanted("y_landmarks", choice.y_landmarks, Wanted("grid" if p <= 3 else "data", 0))
    of_data = isinstance(chosen, Wanted) and chosen.kind == "data"
    colours = isinstance(choice.normalize, str) and choice.normalize in ("auto", "imagenet")
    if colours and p == 3 and kinds[0] == np.uint8 and not of_data:
        samples = [np.asarray([[0.0] * 3, [255.0] * 3])]
    else:
        samples = [_sampled(source, p, seed=choice.seed) for source in sources]
    return choose_scaling(choice.normalize, samples, dtype=kinds[0], n_values=p), samples


def _sampled(source: Source, p: int, *, seed: int) -> Matrix:
    """Values at some points of some data, shape ``(n, p)``."""
    rows = sample(source, _SAMPLED_DATA, seed=seed, finite=False).values.reshape(-1, p)
    if rows.shape[0] > _SAMPLED_POINTS:
        places = rng(seed, _STREAM).choice(rows.shape[0], _SAMPLED_POINTS, replace=False)
        rows = rows[np.sort(places)]
    return np.asarray(rows)


def _values(choice: Choice, scaling: Scaling, samples: Sequence[Matrix]) -> Landmarks:
    """Landmarks among scaled values; given ones are in the units of the data."""
    given = choice.y_landmarks
    if hasattr(given, "shape"):
        points = np.asarray(given, dtype=np.float64)
        fits = points.ndim == 2 and points.shape[1] == scaling.mean.size
        given = scaling(points) if fits else points  # what does not fit is refused below
    return of_values(
        given,
        scaling(scaling.low),
        scaling(scaling.high),
        [scaling(part) for part in samples],
        choice.y_kernel,
        seed=choice.seed,
    )


def _factors(kernel: Kernel, layout: Layout, landmarks: Landmarks) -> tuple[Matrix, ...]:
    """Kernel between positions and landmarks; one factor for each axis where it is a product."""
    if isinstance(kernel, Gaussian) and landmarks.axes is not None:
        pairs = zip(layout.axes, landmarks.axes, strict=True)
        return tuple(kernel(axis[:, None], points[:, None]) for axis, points in pairs)
    return (kernel(layout.positions(), landmarks.points),)


def _limits(scaling: Scaling) -> tuple[float, float] | None:
    if not scaling.bounded:
        return None
    low, high = float(scaling.low.min()), float(scaling.high.max())
    return low - 1e-6 * (high - low), high + 1e-6 * (high - low)


def _dtype(sources: Sequence[Source], choice: Choice, gain: float) -> str:
    """float64 for such data, and where whitening would enlarge the errors of float32."""
    wide = any(compute_dtype(np, source.dtype) == np.float64 for source in sources)
    if choice.dtype == "float32" and gain > _LARGEST_GAIN:
        raise InputError(
            f"dtype='float32' is too coarse for these kernels and landmarks, which enlarge errors "
            f"{gain:.1g} times. Leave dtype out, or use fewer landmarks or narrower kernels."
        )
    return choice.dtype or ("float64" if wide or gain > _LARGEST_GAIN else "float32")


def _weights(choice: Choice, layout: Layout) -> Matrix:
    """Weights of positions on both sides, shape ``(2, N)``; without a mask their sum is v_X."""
    areas = _areas(choice.weights, layout)
    areas = layout.volume * areas / areas.sum()
    mask = mask_of(_on_grid(choice.mask, "mask", layout), layout.shares)
    if not (areas * mask).any():
        raise InputError("mask and weights leave no position: one of them is zero everywhere.")
    return np.stack([(areas * mask).ravel(), areas.ravel()])


def _areas(weights: Any, layout: Layout) -> Matrix:
    if weights is None:
        return np.ones(layout.shape)
    if isinstance(weights, str):
        return _cosines(weights, layout)
    given = np.asarray(_on_grid(weights, "weights", layout), dtype=np.float64)
    try:
        areas = np.broadcast_to(given, layout.shape)
    except ValueError as error:
        raise InputError(
            f"weights must have the grid's shape {layout.shape}; got {given.shape}."
        ) from error
    if not (np.isfinite(areas).all() and (areas >= 0).all() and areas.any()):
        raise InputError("weights must be finite, not negative, and not all zero.")
    return np.asarray(areas)


def _cosines(weights: str, layout: Layout) -> Matrix:
    found = [at for at, dim in enumerate(layout.dims) if dim in _LATITUDES]
    if weights != "coslat" or not found or layout.labels[found[0]] is None:
        raise InputError(
            f"weights must be None, an array, or 'coslat' for data with a coordinate called lat or "
            f"latitude; got {weights!r} for a grid of {', '.join(layout.dims)}."
        )
    degrees = np.asarray(layout.labels[found[0]], dtype=np.float64)
    if np.abs(degrees).max() > 90.0:
        raise InputError(
            f"weights='coslat' needs latitudes in degrees; {layout.dims[found[0]]!r} reaches "
            f"{np.abs(degrees).max():g}."
        )
    shape = [-1 if at == found[0] else 1 for at in range(len(layout.shape))]
    cosines = np.clip(np.cos(np.deg2rad(degrees)), 0.0, None).reshape(shape)
    return np.asarray(np.broadcast_to(cosines, layout.shape))


def _on_grid(given: Any, name: str, layout: Layout) -> Any:
    """A labelled mask as an array of the grid's axes, in their order."""
    if not isinstance(given, xr.DataArray):
        return given
    if set(map(str, given.dims)) != set(layout.dims):
        raise InputError(
            f"{name} has the dimensions {given.dims}; expected those of the grid, {layout.dims}."
        )
    for dim, label in zip(layout.dims, layout.labels, strict=True):
        if label is None or dim not in given.coords or same_labels(given[dim].values, label):
            continue
        try:
            given = given.sel({dim: label})
        except KeyError as error:
            raise InputError(
                f"{name} has other coordinates along {dim!r} than the data; bring it to their "
                f"grid, as {name}.interp(...), or drop them with drop_vars({dim!r})."
            ) from error
    return given.transpose(*layout.dims).values


def settings_with(options: Mapping[str, Any], choice: Choice) -> Settings:
    """Settings of passes over data whose values may be missing, if that was chosen."""
    settings = settings_of(options)
    if choice.nan == "raise":
        return settings
    if settings.nonfinite != "raise":
        raise InputError(
            f"nan='zero_weight' keeps data with values that are not finite; leave out "
            f"nonfinite={settings.nonfinite!r}."
        )
    return replace(settings, nonfinite="keep")
