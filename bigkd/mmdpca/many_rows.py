"""Many rows: exact sums over pairs, or one sum of rows times features after a sketch of PCA."""

from dataclasses import replace
from typing import Any

import numpy as np

from bigkd.backends import to_host
from bigkd.engine import NonFinite, Session
from bigkd.errors import EmptyInputError
from bigkd.io import Source, sample
from bigkd.kernels import FourierFeatures, Polynomial
from bigkd.linalg import Matrix, top_eigenpairs
from bigkd.mmdpca.compressed import (
    CompressedFeatures,
    Landmarks,
    Monomials,
    Sketch,
    landmarks,
    n_monomials,
)
from bigkd.mmdpca.found import Found, require_rank
from bigkd.mmdpca.kernels import Tempered
from bigkd.mmdpca.many import Many
from bigkd.mmdpca.points import Draw, few_enough, measured, point_measure
from bigkd.mmdpca.residual import Residual
from bigkd.mmdpca.rows import Preparation
from bigkd.mmdpca.setting import MOST_MONOMIALS, N_DIRECTIONS, Question
from bigkd.mmdpca.subspace import (
    Subspace,
    distrust,
    leading,
    nystrom_factor,
    rounding_sine,
    sine,
    turned,
)
from bigkd.mmdpca.values import squared_lengths
from bigkd.summaries import CrossMoment, Joined, Mean, PairMoment, SecondMoment

_FEWEST = 400
_SAMPLED = 64
_MOMENT_BYTES = 2**29


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
    present = kept = _present(source, question.seed)
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
    preparation = Preparation(
        width=source.width,
        kept=chosen,
        absent=None if present is None else np.flatnonzero(~present),
        scale=scale,
        nonfinite=nonfinite,
        name=source.name,
    )
    return Many(session=session, source=source, preparation=preparation), share


def _present(source: Source, seed: int) -> Any:
    """Features that are not NaN in some sampled row; None where none is missing."""
    if source.dtype.kind != "f":
        return None
    some = sample(source, _SAMPLED, seed=seed, finite=False).values
    found = ~np.isnan(some).all(axis=0)
    return None if found.all() else found


def _by_pairs(many: Many, question: Question, chosen: Tempered) -> tuple[Found, Matrix | None]:
    """Exact: x_i x_j^T H(x_i, x_j) over all pairs, in tiles and in float64."""
    width, k = many.preparation.n_features, question.k
    many, mean = many.widened(), None
    if question.center:
        state = many.reduce(Mean(width=width), "mean")
        many, mean = _centred(many, to_host(state.total) / int(state.count))
    moment = PairMoment(width=width, kernel=chosen.kernel)
    state = many.reduce_pairs(moment, "pairs of rows")
    matrix = many.finite(to_host(moment.finalize(state)))
    matrix = (matrix + matrix.T) / 2.0
    trace, count = float(np.trace(matrix)), int(state.count)
    eigenvalues, vectors = top_eigenpairs(matrix, min(k + 1, width))
    require_rank(eigenvalues[:k], trace, k)
    vectors = vectors[:, :k]
    means = errors = angle = None
    if question.mmd:
        draw = Draw.of(width, question.n_points, question.seed, many.rows(_SAMPLED, question.seed))
        parts = Joined(summaries=(SecondMoment(width=width), draw))
        second, drawn = many.reduce(parts, "second moments")
        pca = top_eigenpairs(to_host(second.outer), k)[1]
        angle = sine(vectors, pca)
        points = None if few_enough(count, width) else draw.finalize(drawn)
        means, errors = measured(many, chosen.kernel, (vectors, pca), points)
    return Found(
        vectors=vectors,
        eigenvalues=eigenvalues[:k],
        subspace_error=rounding_sine(eigenvalues, k, many.eps),
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
    many, some, mean, pca = _sketched(many, question, some)
    features, about = _features(many, question, chosen, method, pca, some)
    draw = Draw.of(width, question.n_points, question.seed, some)
    work = getattr(features, "work_features", None)
    cross = CrossMoment(features=features, work_features=work)
    sums, drawn = many.reduce(Joined(summaries=(cross, draw)), "rows times features")
    count, (held, own) = int(sums.count), _factors(features, many.finite(to_host(sums.cross)), some)
    found = leading(np.hstack([held, own]), held.shape[1] + own.shape[1])
    found = found._replace(values=found.values / count**2)
    require_rank(found.values[:k], float(found.values.sum()), k)
    vectors, points = found.vectors[:, :k], draw.finalize(drawn)
    residual = Residual(kernel=chosen.kernel, features=features, vectors=vectors, points=points)
    theirs = np.pad(pca.vectors[:, :k], ((0, 0), (0, max(0, k - pca.vectors.shape[1]))))
    parts: tuple[Any, ...] = (residual,)
    if question.mmd:
        parts += (point_measure(chosen.kernel, (vectors, theirs), points),)
    last = many.widened().reduce(Joined(summaries=parts), "what is left")
    moved = to_host(residual.finalize(last[0])) - own @ (own.T @ vectors) / count**2
    means = errors = angle = None
    if question.mmd:
        angle = sine(vectors, theirs)
        means, errors = (to_host(part) for part in parts[1].finalize(last[1]))
    exact = isinstance(features, CompressedFeatures) and features.is_exact
    error = rounding_sine(found.values, k, many.eps)
    return Found(
        vectors=vectors,
        eigenvalues=found.values[:k],
        subspace_error=error if exact else max(error, distrust(turned(moved, found, k))),
        means=means,
        errors=errors,
        pca_sine=angle,
        trace=float(found.values.sum()) if exact else None,
        tail=float(found.values[k:].sum()) if exact else None,
        about={"method": method, **about, **many.counts(count)},
    ), mean


def _sketched(
    many: Many, question: Question, some: Matrix
) -> tuple[Many, Matrix, Matrix | None, Subspace]:
    """PCA from one pass; the collection and `some` of its rows, centred if that was asked for."""
    directions, base = _directions(some, question), np.zeros(some.shape[1])
    shifted = many
    if question.center:
        base = some.mean(axis=0)
        shifted = _centred(many, base)[0]
    state = shifted.reduce(CrossMoment(features=Sketch(directions=directions)), "sketch of PCA")
    total, cross = to_host(state.total), many.finite(to_host(state.cross))
    mean = None
    if question.center:
        middle = total / int(state.count)
        cross = cross - np.outer(total, middle @ directions)
        many, mean = _centred(many, base + middle)
        some = some - (base + middle)
    pca = leading(nystrom_factor(cross, directions), directions.shape[1])
    require_rank(pca.values[:1], float(pca.values.sum()), 1)
    return many, some, mean, pca


def _centred(many: Many, middle: Matrix) -> tuple[Many, Matrix]:
    """The collection less the mean of its prepared rows; and that in the units of the data."""
    scale = many.preparation.scale
    mean = middle if scale is None else middle / scale
    return replace(many, preparation=replace(many.preparation, mean=mean)), mean


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
    many: Many,
    question: Question,
    chosen: Tempered,
    method: str,
    pca: Subspace,
    some: Matrix,
) -> tuple[Any, dict[str, Any]]:
    """Features of the method, and its sizes."""
    kernel, width = chosen.kernel, many.preparation.n_features
    if method == "features":
        n = question.n_frequencies
        return FourierFeatures(kernel.frequencies(n, width, seed=question.seed)), {
            "n_frequencies": n
        }
    basis, p = pca.vectors, pca.vectors.shape[1]
    if isinstance(kernel, Polynomial) and method == "moments":
        q = _moment_directions(question, kernel, width)
        if q == width:
            basis = np.eye(width)
        q = min(q, basis.shape[1])
        monomials = Monomials(kernel=kernel, n_directions=q)
        about = {"n_directions": q, "n_monomials": monomials.n_features}
        return CompressedFeatures(kernel=kernel, basis=basis[:, :q], expansion=monomials), about
    q = min(question.directions, p)
    along, lengths = some @ basis, squared_lengths(some)
    jitter = max(1e-12, 8.0 * many.eps)
    chosen_landmarks = landmarks(kernel, along[:, :q], lengths, along, jitter=jitter)
    about = {"n_landmarks": len(some), "n_directions": q}
    return CompressedFeatures(kernel=kernel, basis=basis[:, :q], expansion=chosen_landmarks), about


def _moment_directions(question: Question, kernel: Polynomial, width: int) -> int:
    if question.n_directions is not None:
        return min(width, question.n_directions)
    if n_monomials(width, kernel) <= MOST_MONOMIALS:
        return width
    q = min(width, max(question.k, N_DIRECTIONS))
    while q > question.k and 8 * width * n_monomials(q, kernel) > _MOMENT_BYTES:
        q -= 1
    return q


def _factors(features: Any, cross: Matrix, some: Matrix) -> tuple[Matrix, Matrix]:
    """Factors of N^2 H_f: of pairs of rows, and of rows with themselves; `some` are landmarks."""
    if isinstance(features, FourierFeatures):
        return cross, np.zeros((cross.shape[0], 0))
    held, missing = features.split(cross)
    if isinstance(features.expansion, Landmarks):
        missing = missing - features.known(some)
    return held, nystrom_factor(missing, features.basis)
