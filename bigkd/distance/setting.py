"""Collections, kernel and question together, and the pass that every method begins with."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bigkd.backends import rng
from bigkd.distance.collections import Measured, measured
from bigkd.distance.question import SAMPLE_ROWS, Question
from bigkd.engine import Session
from bigkd.io import Source, sample
from bigkd.kernels import FourierFeatures, Kernel
from bigkd.protocols import Rows, Summary
from bigkd.summaries import Extent, Joined, MeanEmbedding

_STREAM = 0x64697374  # keeps these numbers apart from other uses of a seed
_PILOT_FREQUENCIES = 500


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Collections, kernel and question, ready to be answered."""

    session: Session
    sources: Sequence[Source]
    kernel: Kernel
    question: Question
    n_vectors: int
    known: list[Measured] | None = None

    @property
    def width(self) -> int:
        """Width of the rows."""
        return self.sources[0].width

    def measure(self, *also: Summary[Any]) -> list[tuple[Measured, tuple[Any, ...]]]:
        """Mass and extent of each collection, and the states of `also`: one pass over each."""
        found = []
        summary = Joined(summaries=(Extent(width=self.width, kernel=self.kernel), *also))
        for source in self.sources:
            reduced = self.session.reduce(summary, source, label=f"summing over {source.name}")
            extent, *states = reduced.state
            about = measured(source, reduced, extent, normalize=self.question.normalize)
            found.append((about, tuple(states)))
        return found

    @cached_property
    def pilot(self) -> np.ndarray[Any, Any]:
        """Squared difference of both characteristic functions at a few frequencies, from a sample.

        Made once, however many methods ask what they would cost.
        """
        seed = self.question.seed
        apart = int(rng(seed, _STREAM).integers(2**31))
        frequencies = self.kernel.frequencies(_PILOT_FREQUENCIES, self.width, seed=apart)
        features = FourierFeatures(frequencies)
        summary = MeanEmbedding(features=features, n_vectors=self.n_vectors)
        functions = []
        for source in self.sources[:2]:
            rows = sample(source, SAMPLE_ROWS, seed=seed)
            state = summary.update(summary.init(rows.values), rows)
            total = characteristic(state.total[0])
            functions.append(total / _total_weight(rows))
        difference = functions[0] - functions[1]
        values = np.sum(difference.real**2 + difference.imag**2, axis=0)
        clipped: np.ndarray[Any, Any] = np.clip(values, 0.0, 4.0)
        return clipped

    def measured(self) -> list[Measured]:
        """Mass and extent of each collection, in a pass of their own unless they are known."""
        return self.known or [about for about, _ in self.measure()]


def bounding_box(known: Sequence[Measured]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Least and largest coordinates of all collections."""
    lower = np.min([about.lower for about in known], axis=0)
    return lower, np.max([about.upper for about in known], axis=0)


def characteristic(total: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Sums of ``exp(i w x)`` from sums of features, whose last axis holds cosines, then sines."""
    r = total.shape[-1] // 2
    return np.asarray((total[..., :r] + 1j * total[..., r:]) * r**0.5)


def _total_weight(rows: Rows) -> float:
    sizes = np.ones(rows.index.shape) if rows.weights is None else np.abs(rows.weights)
    if rows.vectors is not None:
        sizes = sizes * np.linalg.norm(rows.vectors, axis=1)
    return float(np.sum(sizes)) or 1.0
