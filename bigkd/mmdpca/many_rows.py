"""Many rows: exact sums over pairs, or one sum of rows times features after a sketch of PCA."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bigkd.backends import to_host
from bigkd.engine import NonFinite, Session
from bigkd.errors import EmptyInputError
from bigkd.io import Source, sample
from bigkd.kernels import FourierFeatures, Kernel, Polynomial
from bigkd.linalg import Matrix, top_eigenpairs
from bigkd.mmdpca.compressed import (
    CompressedFeatures,
    Expansion,
    Monomials,
    Sketch,
    landmarks,
    n_monomials,
)
from bigkd.mmdpca.found import Found, require_rank
from bigkd.mmdpca.kernels import Tempered
from bigkd.mmdpca.measures import PairMeasure, PointMeasure
from bigkd.mmdpca.rows import Preparation, Prepared, PreparedPairs
from bigkd.mmdpca.setting import MOST_MONOMIALS, MOST_WORK, N_DIRECTIONS, Question
from bigkd.mmdpca.subspace import Subspace, leading, nystrom_factor, rounding_sine, sine
from bigkd.protocols import Rows, Summary
from bigkd.summaries import CrossMoment, Joined, Mean, PairMoment, Reservoir, SecondMoment

_STREAM = 0x6D6D64
_JITTER = {4: 1e-6, 8: 1e-12}
_FEWEST = 400
_SAMPLED = 64
_MOMENT_BYTES = 2**29
_SURE = 2.0


@dataclass(frozen=True, kw_only=True)
class Many:
    """A collection whose rows are prepared, and the passes over it."""

    session: Session
    source: Source
    preparation: Preparation

    def reduce(self, summary: Summary[Any], label: str) -> Any:
        """State after all prepared rows."""
        prepared = Prepared(preparation=self.preparation, summary=summary)
        return self._session().reduce(prepared, self.source, label=label).state

    def reduce_pairs(self, summary: Any, label: str) -> Any:
        """State after all pairs of prepared rows."""
        prepared = PreparedPairs(preparation=self.preparation, summary=summary)
        return self._session().reduce_pairs(prepared, self.source, label=label).state

    def rows(self, n_rows: int, seed: int) -> Matrix:
        """Some prepared rows, on the host in float64."""
        some = sample(self.source, n_rows, seed=seed, finite=self.preparation.kept is None)
        values = some.values[np.isfinite(some.values[:, self.columns]).all(axis=1)]
        if not len(values):
            raise EmptyInputError(
                f"{self.source.name}: none of {len(some.values)} sampled rows is finite in all "
                f"features that are finite in some."
            )
        return np.asarray(self.preparation(Rows(values, np.arange(len(values)))).values)

    @property
    def columns(self) -> Any:
        """The features that count."""
        return slice(None) if self.preparation.kept is None else self.preparation.kept

    def counts(self, n_rows: int) -> dict[str, int]:
        """Rows that were used and left out, for the result."""
        return {"n_rows": n_rows, "n_dropped": self.source.n_rows - n_rows}

    def _session(self) -> Session:
        """A session that leaves rows that are not finite to the preparation, where it knows."""
        if self.preparation.kept is None:
            return self.session
        return replace(self.session, settings=replace(self.session.settings, nonfinite="keep"))


def fit_many(
    session: Session,
    source: Source,
    question: Question,
    method: str,
    *,
    weights: Matrix | None,
    nonfinite: NonFinite,
) -> tuple[Found, dict[str, Any]]:
    """The subspace, with vectors over all features, NaN for those left out; and the mean."""
    many, share = _prepared(session, source, question, weights, nonfinite)
    chosen = question.tempered(many.preparation.n_features)
    if method == "pairs":
        found, mean = _by_pairs(many, question, chosen)
    else:
        found, mean = _by_features(many, question, chosen, method)
    back = many.preparation.back
    scale = many.preparation.scale
    vectors = found.vectors if scale is None else found.vectors / scale[:, None]
    kept = np.isfinite(back(np.zeros(many.preparation.n_features)))
    return replace(found, vectors=back(vectors.T).T), {
        "mean": mean if mean is None else back(mean),
        "kept": kept,
        "share": share,
        "chosen": chosen,
    }


def _prepared(
    session: Session,
    source: Source,
    question: Question,
    weights: Matrix | None,
    nonfinite: NonFinite,
) -> tuple[Many, float]:
    """The collection with its features chosen and scaled, and what weights were multiplied by."""
    kept = _present(source, question.seed)
    if weights is not None:
        kept = (np.ones(source.width, dtype=bool) if kept is None else kept) & (weights > 0.0)
        kept = None if kept.all() else kept
    if kept is not None and not kept.any():
        raise EmptyInputError(f"{source.name}: no feature is finite in any row and has weight.")
    chosen = None if kept is None else np.flatnonzero(kept)
    scale, share = None, 1.0
    if weights is not None:
        own = weights if chosen is None else weights[chosen]
        share = own.size / float(own.sum())
        scale = np.sqrt(own * share)
    preparation = Preparation(width=source.width, kept=chosen, scale=scale, nonfinite=nonfinite)
    return Many(session=session, source=source, preparation=preparation), share


def _present(source: Source, seed: int) -> Any:
    """Features that are finite in some sampled row; None where none is missing."""
    if source.dtype.kind != "f":
        return None
    some = sample(source, _SAMPLED, seed=seed, finite=False).values
    found = np.isfinite(some).any(axis=0)
    return None if found.all() else found


def _by_pairs(many: Many, question: Question, chosen: Tempered) -> tuple[Found, Matrix | None]:
    """Exact: x_i x_j^T H(x_i, x_j) over all pairs, in tiles."""
    width, k = many.preparation.n_features, question.k
    mean = None
    if question.center:
        state = many.reduce(Mean(width=width), "mean")
        many, mean = _centred(many, to_host(state.total) / int(state.count))
    moment = PairMoment(width=width, kernel=chosen.kernel)
    state = many.reduce_pairs(moment, "pairs of rows")
    matrix = to_host(moment.finalize(state))
    matrix = (matrix + matrix.T) / 2.0
    trace, count = float(np.trace(matrix)), int(state.count)
    eigenvalues, vectors = top_eigenpairs(matrix, min(k + 1, width))
    require_rank(eigenvalues[:k], trace, k)
    means = errors = angle = None
    if question.mmd:
        second, points = many.reduce(
            Joined(summaries=(SecondMoment(width=width), _reservoir(question, width))),
            "second moments",
        )
        pca = top_eigenpairs(to_host(second.outer), k)[1]
        angle = sine(vectors[:, :k], pca)
        means, errors = measured(
            many, chosen.kernel, (vectors[:, :k], pca), points=points, n_rows=count
        )
    return Found(
        vectors=vectors[:, :k],
        eigenvalues=eigenvalues[:k],
        subspace_error=rounding_sine(eigenvalues, k),
        means=means,
        errors=errors,
        pca_sine=angle,
        trace=trace,
        tail=trace - float(eigenvalues[:k].sum()),
        about={"method": "pairs", **many.counts(count)},
    ), mean


def _by_features(
    many: Many, question: Question, chosen: Tempered, method: str
) -> tuple[Found, Matrix | None]:
    """A sum of rows times features, whose columns span nearly what X^T G X does."""
    width, k = many.preparation.n_features, question.k
    some = many.rows(question.landmarks(many.source.n_rows, width), question.seed)
    directions = _directions(some, question)
    state = many.reduce(CrossMoment(features=Sketch(directions=directions)), "sketch of PCA")
    count, total, cross = int(state.count), to_host(state.total), to_host(state.cross)
    mean = None
    if question.center:
        middle = total / count
        cross = cross - np.outer(total, middle @ directions)
        many, mean = _centred(many, middle)
        some = some - middle
    pca = leading(nystrom_factor(cross, directions), directions.shape[1])
    features, about = _features(many, question, chosen, method, pca, some)
    reservoir = _reservoir(question, width)
    work = getattr(features, "work_features", None)
    parts: tuple[Any, ...] = (CrossMoment(features=features, work_features=work),)
    parts += (reservoir,) if question.mmd else ()
    sums = many.reduce(Joined(summaries=parts), "rows times features")
    factors = _factors(features, to_host(sums[0].cross))
    found = leading(factors[0], k + 1)
    eigenvalues = found.values / count**2
    require_rank(eigenvalues[:k], float(eigenvalues.sum()), k)
    vectors = found.vectors[:, :k]
    error = rounding_sine(eigenvalues, k)
    if len(factors) > 1:
        error = max(error, min(1.0, _SURE * sine(leading(factors[1], k).vectors, vectors)))
    means = errors = angle = None
    if question.mmd:
        own = np.pad(pca.vectors[:, :k], ((0, 0), (0, max(0, k - pca.vectors.shape[1]))))
        angle = sine(vectors, own)
        means, errors = measured(
            many, chosen.kernel, (vectors, own), points=sums[1], n_rows=count, exact=False
        )
    return Found(
        vectors=vectors,
        eigenvalues=eigenvalues[:k],
        subspace_error=error,
        means=means,
        errors=errors,
        pca_sine=angle,
        about={"method": method, **about, **many.counts(count)},
    ), mean


def measured(
    many: Many,
    kernel: Kernel,
    vectors: tuple[Matrix, ...],
    *,
    points: Any,
    n_rows: int,
    exact: bool | None = None,
) -> tuple[Matrix, Matrix]:
    """Means over pairs and their standard errors: of all pairs, or with the points of a sample."""
    width = many.preparation.n_features
    if exact is None:
        exact = 2.0 * len(vectors) * width * n_rows**2 <= MOST_WORK
    if exact:
        pairs = PairMeasure(kernel=kernel, vectors=vectors)
        means = to_host(pairs.finalize(many.reduce_pairs(pairs, "distance to projections")))
        return means, np.zeros_like(means)
    drawn = _reservoir_of(points, width)
    summary = PointMeasure(
        kernel=kernel, vectors=vectors, points=to_host(drawn.values), index=to_host(drawn.index)
    )
    found = summary.finalize(many.reduce(summary, "distance to projections"))
    return to_host(found[0]), to_host(found[1])


def draw_points(many: Many, n_points: int, seed: int) -> tuple[Any, int]:
    """A random sample of prepared rows, and how many rows there are: one pass."""
    width = many.preparation.n_features
    state = many.reduce(Reservoir(width=width, size=n_points, seed=seed + _STREAM), "sample")
    return state, int(state.count)


def _centred(many: Many, middle: Matrix) -> tuple[Many, Matrix]:
    """The collection less the mean of its prepared rows; and that in the units of the data."""
    scale = many.preparation.scale
    mean = middle if scale is None else middle / scale
    return replace(many, preparation=replace(many.preparation, mean=mean)), mean


def _reservoir(question: Question, width: int) -> Reservoir:
    return Reservoir(width=width, size=question.n_points, seed=question.seed + _STREAM)


def _reservoir_of(state: Any, width: int) -> Any:
    return Reservoir(width=width, size=int(state.key.shape[0])).finalize(state)


def _directions(some: Matrix, question: Question) -> Matrix:
    """Directions to multiply C with: leading ones of a few rows, or all there are."""
    width, n = some.shape[1], 5 * question.directions // 2
    if width <= n:
        return np.eye(width)
    few = some[: max(_FEWEST, 4 * n)]
    few = few - few.mean(axis=0) if question.center else few
    found, turn = np.linalg.eigh(few @ few.T)
    good = found[::-1][:n] > 1e-12 * found[-1]
    leading_rows = turn[:, ::-1][:, :n][:, good]
    return np.asarray(np.linalg.qr(few.T @ leading_rows)[0])


def _features(
    many: Many, question: Question, chosen: Tempered, method: str, pca: Subspace, some: Matrix
) -> tuple[Any, dict[str, Any]]:
    """Features of the method, and its sizes."""
    kernel, width = chosen.kernel, many.preparation.n_features
    if method == "features":
        n = question.n_frequencies
        return FourierFeatures(kernel.frequencies(n, width, seed=question.seed)), {
            "n_frequencies": n
        }
    expansions: tuple[Expansion, ...]
    basis = pca.vectors
    if isinstance(kernel, Polynomial) and method == "moments":
        q = _moment_directions(question, kernel, width)
        basis = np.eye(width) if q == width else basis[:, :q]
        q = basis.shape[1]
        expansions = (Monomials(kernel=kernel, n_directions=q),)
        if q < width:
            expansions += (Monomials(kernel=kernel, n_directions=max(1, q // 2)),)
        about = {"n_directions": q, "n_monomials": expansions[0].n_features}
    else:
        q, m = min(question.directions, basis.shape[1]), len(some)
        along, lengths = some @ basis, (some**2).sum(axis=1)
        jitter = _JITTER[many.source.itemsize if many.source.itemsize == 8 else 4]
        p = basis.shape[1]
        half = (m // 2, q, min(m // 2, p)) if q == width else (m // 2, q // 2, min(m, p) // 2)
        expansions = tuple(
            landmarks(kernel, along[:rows, :use], lengths[:rows], along[:rows, :few], jitter=jitter)
            for rows, use, few in ((m, q, min(m, p)), half)
            if min(rows, use, few)
        )
        basis = basis[:, :q]
        about = {"n_landmarks": m, "n_directions": q}
    return CompressedFeatures(kernel=kernel, basis=basis, expansions=expansions), about


def _moment_directions(question: Question, kernel: Polynomial, width: int) -> int:
    if question.n_directions is not None:
        return min(width, question.n_directions)
    if n_monomials(width, kernel) <= MOST_MONOMIALS:
        return width
    q = min(width, N_DIRECTIONS)
    while q > 1 and 8 * width * n_monomials(q, kernel) > _MOMENT_BYTES:
        q -= 1
    return q


def _factors(features: Any, cross: Matrix) -> list[Matrix]:
    """Factors of N^2 H_f: with all features, and with half of them."""
    if isinstance(features, FourierFeatures):
        r = features.n_frequencies
        half = [*range(r // 2), *range(r, r + r // 2)]
        return [cross, cross[:, half] * np.sqrt(r / max(1, r // 2))]
    return [
        np.hstack([own, nystrom_factor(missing, features.basis[:, : missing.shape[1]])])
        for own, missing in features.parts(cross)
    ]
