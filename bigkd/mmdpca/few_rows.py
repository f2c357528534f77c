"""``method="gram"``: few long rows, by way of their inner products. Exact."""

from typing import Any

import numpy as np
import psutil
from dask.utils import parse_bytes

from bigkd.engine import NonFinite, Session
from bigkd.errors import MemoryPlanError
from bigkd.io import Source
from bigkd.linalg import Matrix, top_eigenpairs
from bigkd.mmdpca.found import Found, require_rank
from bigkd.mmdpca.long_rows import LongRows, combined, gram_of
from bigkd.mmdpca.measures import gram_measure
from bigkd.mmdpca.setting import Question
from bigkd.mmdpca.subspace import rounding_sine, sine_of_cosines
from bigkd.mmdpca.values import values

_NEGLIGIBLE = 1e-15
_MATRICES = 12


def fit_few(
    session: Session,
    source: Source,
    question: Question,
    *,
    weights: Matrix | None,
    nonfinite: NonFinite,
) -> tuple[Found, dict[str, Any]]:
    """The subspace, with vectors over all features, NaN for those left out; and the mean.

    Two passes over the columns: inner products, and the components as sums of rows.
    """
    _require_memory(source, session.settings.memory_limit)
    scale = None if weights is None else np.sqrt(weights)
    rows = gram_of(session, source, scale=scale, nonfinite=nonfinite)
    kept = rows.features if weights is None else rows.features & (weights > 0.0)
    n_features, n_rows = int(kept.sum()), len(rows.samples)
    share = 1.0 if weights is None else n_features / float(weights[kept].sum())
    chosen = question.tempered(n_features)
    gram = share * (rows.centred if question.center else rows.gram)
    squared = share * rows.squared_distances
    pairs = values(chosen.kernel, gram, squared)
    # C = L L^T; the eigenvectors y of L^T G L give those of X^T G X as X^T (G L y).
    found, turn = np.linalg.eigh((gram + gram.T) / 2.0)
    good = found > _NEGLIGIBLE * n_rows * found[-1]
    factor = turn[:, good] * np.sqrt(found[good])
    core = factor.T @ pairs @ factor / n_rows**2
    core = (core + core.T) / 2.0
    trace = float(np.trace(core))
    eigenvalues, y = top_eigenpairs(core, min(question.k + 1, core.shape[0]))
    require_rank(eigenvalues[: question.k], trace, question.k)
    k = question.k
    coefficients = pairs @ (factor @ y[:, :k]) / (eigenvalues[:k] * n_rows**2)
    means = errors = angle = None
    if question.mmd:
        pca = factor[:, ::-1][:, :k]
        angle = sine_of_cosines(coefficients.T @ pca)
        scores = [gram @ coefficients, np.pad(pca, ((0, 0), (0, k - pca.shape[1])))]
        means = np.stack([gram_measure(chosen.kernel, gram, squared, part) for part in scores])
        errors = np.zeros_like(means)
    vectors, mean = _over_features(session, rows, coefficients, question, n_rows)
    vectors[~kept] = np.nan
    about = {"method": "gram", "n_rows": n_rows, "n_dropped": rows.n_dropped}
    return Found(
        vectors=vectors,
        eigenvalues=eigenvalues[:k],
        subspace_error=rounding_sine(eigenvalues, k, _eps(source)),
        means=means,
        errors=errors,
        pca_sine=angle,
        trace=trace,
        tail=trace - float(eigenvalues[:k].sum()),
        about=about,
    ), {"mean": mean, "kept": kept, "share": share, "chosen": chosen}


def _eps(source: Source) -> float:
    """Spacing of the numbers that inner products are made of; those of bytes are exact."""
    narrow = source.dtype.kind == "f" and source.dtype.itemsize < 8
    return float(np.finfo(np.float32 if narrow else np.float64).eps)


def _require_memory(source: Source, limit: int | str | None) -> None:
    """Refuse matrices of all pairs of rows that this process has no memory for."""
    needed = _MATRICES * 8 * source.n_rows**2
    available = psutil.virtual_memory().available if limit is None else parse_bytes(limit)
    if needed > available:
        raise MemoryPlanError(
            f"method='gram' keeps matrices of {source.n_rows} x {source.n_rows} rows: "
            f"{needed / 1e9:.1f} GB; {available / 1e9:.1f} GB are available. Pass "
            f"method='nystrom', or 'moments' for polynomials, or fewer rows."
        )


def _over_features(
    session: Session, rows: LongRows, coefficients: Matrix, question: Question, n_rows: int
) -> tuple[Matrix, Matrix | None]:
    if not question.center:
        return combined(session, rows, coefficients), None
    even = np.full((n_rows, 1), 1.0 / n_rows)
    both = combined(session, rows, np.hstack([coefficients - coefficients.mean(axis=0), even]))
    return both[:, :-1].copy(), both[:, -1].copy()
