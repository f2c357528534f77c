"""Collections, kernel and question together, and the pass that every method begins with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bigkd.distance.collections import Measured, measured
from bigkd.distance.question import Question
from bigkd.engine import Session
from bigkd.io import Source
from bigkd.kernels import Kernel
from bigkd.protocols import Summary
from bigkd.summaries import Extent, Joined


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

    def measured(self) -> list[Measured]:
        """Mass and extent of each collection, in a pass of their own unless they are known."""
        return self.known or [about for about, _ in self.measure()]


def characteristic(total: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Sums of ``exp(i w x)`` from sums of features, whose last axis holds cosines, then sines."""
    r = total.shape[-1] // 2
    return np.asarray((total[..., :r] + 1j * total[..., r:]) * r**0.5)
