"""Which kernel and how many frequencies: as given, or chosen from a seeded sample."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import threadpoolctl

from bigkd.errors import InputError, ShapeError
from bigkd.finc.ken import gram_spectrum
from bigkd.finc.spec import FincSpec
from bigkd.io import Source, sample_rows
from bigkd.kernels import (
    FourierFeatures,
    Gaussian,
    Kernel,
    RadialKernel,
    Sampling,
    median_distance,
    variance_rule,
)

logger = logging.getLogger(__name__)

Rule: TypeAlias = Literal["auto", "median"]
KernelChoice: TypeAlias = "Kernel | Rule | ScaledRule"
FrequencyChoice: TypeAlias = int | Literal["auto"]

SAMPLE_ROWS = 1_000
FEWEST, MOST, STEP = 100, 4_000, 50
PIECE, N_PIECES = 250, 8


@dataclass(frozen=True)
class ScaledRule:
    """A kernel whose length is a multiple of what a rule finds in a sample of the rows.

    Attributes
    ----------
    rule
        ``"auto"`` for the paper's variance rule, ``"median"`` for the median distance.
    factor
        What the rule's length is multiplied by; smaller gives narrower modes.
    shape
        Which kernel, ``Gaussian`` unless given; its own length is ignored.

    Examples
    --------
    >>> ScaledRule("median", 0.3)
    ScaledRule(rule='median', factor=0.3, shape=Gaussian(sigma=1.0))
    """

    rule: Rule
    factor: float = 1.0
    shape: RadialKernel = field(default_factory=lambda: Gaussian(1.0))

    def __post_init__(self) -> None:
        if self.rule not in ("auto", "median"):
            raise InputError(f"the bandwidth rule must be 'auto' or 'median'; got {self.rule!r}.")
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise InputError(f"factor must be finite and positive; got {self.factor!r}.")
        if not isinstance(self.shape, RadialKernel):
            raise InputError(
                f"shape must be a kernel with a length, such as bigkd.kernels.Laplace(1.0); got "
                f"{self.shape!r}."
            )


@dataclass(frozen=True, kw_only=True)
class FeatureChoice:
    """What the user asks for; checked here, once. See `bigkd.finc.modes`."""

    kernel: KernelChoice = "auto"
    n_frequencies: FrequencyChoice = "auto"
    frequency_tolerance: float = 0.01
    sampling: Sampling = "iid"
    features: FourierFeatures | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        given = isinstance(self.kernel, Kernel | ScaledRule)
        if not given and self.kernel not in ("auto", "median"):
            raise InputError(
                f"kernel must be a kernel such as bigkd.kernels.Gaussian(2.0), 'auto', 'median', "
                f"or ScaledRule('median', 0.3); got {self.kernel!r}."
            )
        _require_spectrum(self.kernel)
        if self.n_frequencies != "auto" and (
            not isinstance(self.n_frequencies, int | np.integer) or self.n_frequencies < 1
        ):
            raise InputError(
                f"n_frequencies must be at least 1, or 'auto'; got {self.n_frequencies!r}."
            )
        if not self.frequency_tolerance > 0:
            raise InputError(
                f"frequency_tolerance must be positive; got {self.frequency_tolerance!r}."
            )
        if self.sampling not in ("iid", "orthogonal"):
            raise InputError(f"sampling must be 'iid' or 'orthogonal'; got {self.sampling!r}.")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer):
            raise InputError(f"seed must be an integer; got {self.seed!r}.")
        if self.seed < 0:
            raise InputError(f"seed must not be negative; got {self.seed}.")

    @property
    def looks_at_data(self) -> bool:
        """Whether something has to be chosen from a sample."""
        chosen = not isinstance(self.kernel, Kernel) or self.n_frequencies == "auto"
        return self.features is None and chosen


def _require_spectrum(choice: KernelChoice) -> None:
    """Raise InputError for a kernel without Fourier features, which has no modes here."""
    kernel = choice.shape if isinstance(choice, ScaledRule) else choice
    if isinstance(kernel, Kernel) and not kernel.has_spectrum:
        raise InputError(
            f"kernel must be one with a spectrum, and so with K(x, x) = 1: Gaussian, Laplace, "
            f"Matern, InverseMultiquadric or CovarianceGaussian; got {kernel!r}."
        )


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A spec, and how it came about."""

    spec: FincSpec
    attrs: dict[str, Any] = field(default_factory=dict)


def require_equal_width(sources: Sequence[Source]) -> None:
    """Raise ShapeError unless all `sources` have rows of one width."""
    first = sources[0]
    for other in sources[1:]:
        if other.width != first.width:
            raise ShapeError(
                f"{first.name} has rows of {first.width} elements (shape {first.row_shape}) and "
                f"{other.name} of {other.width} (shape {other.row_shape}); they must be equal. "
                f"Were both embedded by the same model?"
            )


def resolve(
    choice: FeatureChoice, sources: Sequence[Source], *, rho: float = 1.0, n_modes: int = 10
) -> Resolved:
    """The spec for `sources`, from what `choice` gives and a sample of rows for the rest.

    The sample has up to 1000 rows of each source. The kernel is a Gaussian, or the shape of a
    `ScaledRule`, whose bandwidth is that of `bigkd.kernels.variance_rule` (``"auto"``) or the
    median distance (``"median"``), on the pooled sample, times the rule's factor. The number of
    frequencies, between 100 and 4000, is the smallest whose expected relative error is within
    `frequency_tolerance`: the root mean square, over draws of frequencies, of ``|l - exact| /
    |exact|`` for the top eigenvalues l, measured against the exact ones (KEN) on the worse of two
    halves of the sample. With one source the eigenvalues are those of its own kernel matrix. What
    was expected is reported as ``frequency_error``; a single draw stays below twice that in about 9
    of 10 cases.

    Raises
    ------
    ShapeError
        If widths differ.
    EmptyInputError, InputError
        If the sample cannot tell: too few finite rows, or all of them equal.
    """
    require_equal_width(sources)
    width = sources[0].width
    if choice.features is not None:
        return Resolved(spec=_given(choice, width))
    attrs: dict[str, Any] = {}
    samples = []
    if choice.looks_at_data:
        samples = [sample_rows(source, SAMPLE_ROWS, seed=choice.seed) for source in sources]
    with threadpoolctl.threadpool_limits(limits=1):
        kernel, about = _kernel(choice, samples)
        attrs |= about
        if choice.n_frequencies != "auto":
            r = int(choice.n_frequencies)
        else:
            r, about = _count(choice, kernel, samples, rho=rho, n_modes=n_modes)
            attrs |= about
        frequencies = kernel.frequencies(r, width, seed=choice.seed, sampling=choice.sampling)
    spec = FincSpec(
        features=FourierFeatures(frequencies),
        kernel=kernel,
        sampling=choice.sampling,
        seed=int(choice.seed),
    )
    return Resolved(spec=spec, attrs=attrs)


def exact_kernel(
    choice: FeatureChoice, sources: Sequence[Source]
) -> tuple[Callable[[Any, Any], Any], dict[str, Any]]:
    """The kernel itself, chosen as by `resolve`; that of the given features where there are any.

    Raises
    ------
    ShapeError, EmptyInputError, InputError
        As `resolve`.
    """
    require_equal_width(sources)
    if choice.features is not None:
        spec = _given(choice, sources[0].width)
        return _proxy(spec.features), {"kernel": "given frequencies", "n_frequencies": spec.r}
    samples = []
    if not isinstance(choice.kernel, Kernel):
        samples = [sample_rows(source, SAMPLE_ROWS, seed=choice.seed) for source in sources]
    kernel, about = _kernel(choice, samples)
    parameters = json.dumps(kernel.parameters)
    return kernel, {"kernel": kernel.name, "kernel_parameters": parameters, **about}


def _given(choice: FeatureChoice, width: int) -> FincSpec:
    features = choice.features
    if not isinstance(features, FourierFeatures):
        raise InputError(
            f"features must be bigkd.kernels.FourierFeatures(frequencies); got "
            f"{type(features).__name__}."
        )
    if features.width != width:
        raise ShapeError(f"features are for rows of width {features.width}; the rows have {width}.")
    kernel = choice.kernel if isinstance(choice.kernel, Kernel) else None
    return FincSpec(features=features, kernel=kernel, sampling="given", seed=int(choice.seed))


def _kernel(
    choice: FeatureChoice, samples: list[np.ndarray[Any, Any]]
) -> tuple[Kernel, dict[str, Any]]:
    if isinstance(choice.kernel, Kernel):
        return choice.kernel, {}
    kernel = choice.kernel
    scaled = kernel if isinstance(kernel, ScaledRule) else ScaledRule(kernel)
    pooled = np.concatenate(samples)
    if scaled.rule == "median":
        length = median_distance(pooled, n_rows=2 * SAMPLE_ROWS, seed=choice.seed)
        about: dict[str, Any] = {"bandwidth_rule": "median distance of a sample"}
    else:
        found = variance_rule(pooled, kernel=scaled.shape, seed=choice.seed)
        length = found.bandwidth
        about = {
            "bandwidth_rule": "smallest bandwidth whose RKE score varies little between subsets",
            "bandwidth_variance": found.variance,
            "bandwidth_rule_met": int(found.met),
        }
    about["bandwidth_factor"] = float(scaled.factor)
    return scaled.shape.with_length(scaled.factor * length), about


def _count(
    choice: FeatureChoice,
    kernel: Kernel,
    samples: list[np.ndarray[Any, Any]],
    *,
    rho: float,
    n_modes: int,
) -> tuple[int, dict[str, Any]]:
    """Number of frequencies whose expected error is within the tolerance, and that error.

    The error of `PIECE` frequencies is measured with several disjoint sets of them, against the
    exact eigenvalues (KEN) of a sample; errors of Monte Carlo features fall as ``1/sqrt(r)``.
    """
    width = samples[0].shape[1]
    frequencies = kernel.frequencies(
        N_PIECES * PIECE, width, seed=choice.seed, sampling=choice.sampling
    )
    pieces = [FourierFeatures(part) for part in np.split(frequencies, N_PIECES)]
    squares = []
    for half in _halves(samples):
        truth = _top(kernel, half, rho, n_modes)
        errors = [_distance(_top(_proxy(piece), half, rho, n_modes), truth) for piece in pieces]
        squares.append(np.mean(np.square(errors)))
    of_piece = float(np.sqrt(max(squares)))
    tolerance = choice.frequency_tolerance
    wanted = STEP * int(np.ceil(PIECE * (of_piece / tolerance) ** 2 / STEP))
    r = int(np.clip(wanted, FEWEST, MOST))
    error = of_piece * (PIECE / r) ** 0.5
    logger.debug("%s frequencies err by %.4f, so %s by %.4f", PIECE, of_piece, r, error)
    return r, {
        "n_frequencies_rule": "expected relative error of the top eigenvalues, from a sample",
        "frequency_error": error,
        "frequency_tolerance": tolerance,
        "frequency_tolerance_met": int(wanted <= MOST),
    }


def _halves(samples: list[np.ndarray[Any, Any]]) -> list[list[np.ndarray[Any, Any]]]:
    """Two disjoint halves of every sample; the whole where there is too little to halve."""
    if min(sample.shape[0] for sample in samples) < 20:
        return [samples]
    return [[sample[start::2] for sample in samples] for start in (0, 1)]


def _proxy(features: FourierFeatures) -> Callable[[Any, Any], Any]:
    """The kernel that `features` estimate."""
    return lambda x, y: features(x) @ features(y).T


def _top(
    kernel: Any, samples: list[np.ndarray[Any, Any]], rho: float, n_modes: int
) -> np.ndarray[Any, Any]:
    """Top eigenvalues of the first sample against the others together, exactly for `kernel`."""
    test, reference = samples[0], np.concatenate([samples[0][:0], *samples[1:]])
    k = min(n_modes, test.shape[0])
    return gram_spectrum(kernel, test, reference, rho=rho).top(k)[0]


def _distance(values: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> float:
    """Relative root mean square difference."""
    scale = float(np.linalg.norm(truth))
    return float(np.linalg.norm(values - truth)) / scale if scale > 0 else 0.0
