"""What a pass will need, known before it runs."""

from dataclasses import dataclass

from bigkd.config import MEGABYTE, TASK_BYTES
from bigkd.engine.inputs import Policy
from bigkd.engine.pairs import Square
from bigkd.engine.stripes import Stripe, held_states
from bigkd.errors import MemoryPlanError
from bigkd.io import ArraySource, DaskSource, Source
from bigkd.io.columns import ArrayColumns, FileColumns
from bigkd.io.sources import FileSource
from bigkd.protocols import Footprint

DECODING = 3
"""Copies of a block while a store decodes it: compressed, decoded, and put together."""

RETAINED_BYTES = 128 * MEGABYTE
"""What the memory allocator keeps of them, at most: each decoding thread has its own heap."""

EXCHANGED_STATES = 3
"""States more that a worker holds: one that another worker sent, two that wait for their turn."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One pass over one collection, in numbers.

    Attributes
    ----------
    label
        What the pass is for.
    n_rows, n_blocks, n_tasks
        Rows read, reads, and tasks that read (merges come on top, one fewer).
    bytes_read
        Raw bytes read.
    task_bytes
        Most bytes that a thread holds at once: rows, temporaries, its state, and finished states
        that wait to be merged.
    remedy
        What to do where that does not fit.
    """

    label: str
    n_rows: int
    n_blocks: int
    n_tasks: int
    bytes_read: int
    task_bytes: int
    remedy: str = (
        "Use smaller block_rows, or fewer n_frequencies where there are any (second moments fall "
        "with their square)"
    )

    def validate(self, available: int) -> None:
        """Refuse a pass that does not fit.

        Raises
        ------
        MemoryPlanError
            If a task needs more than the `available` bytes of one worker thread.
        """
        if self.task_bytes > available:
            need, have = self.task_bytes / 1e9, available / 1e9
            raise MemoryPlanError(
                f"{self.label}: one task needs {need:.2f} GB (rows, temporaries and summary); a "
                f"worker thread has {have:.2f} GB. {self.remedy}, or give each worker thread at "
                f"least {need:.2f} GB."
            )


def plan_pass(
    label: str,
    source: Source,
    stripes: list[Stripe],
    cost: Footprint,
    *,
    exact: bool,
    nonfinite: Policy,
    distributed: bool = False,
    kept: bool = False,
) -> Plan:
    """Predict a pass over `stripes` whose updates cost `cost`; on a cluster, or in this process.

    `kept` tells that it may go on from states of earlier calls.
    """
    rows = [source.bounds[stripe.last] - source.bounds[stripe.first] for stripe in stripes]
    more = EXCHANGED_STATES if distributed and len(stripes) > 1 else 0
    updating, merging = (
        held + more if held else 0 for held in held_states(len(stripes), exact=exact, kept=kept)
    )
    reading = reading_bytes(source, max(rows), nonfinite) + cost.scratch + updating * cost.state
    return Plan(
        label=label,
        n_rows=sum(rows),
        n_blocks=sum(len(stripe.blocks) for stripe in stripes),
        n_tasks=len(stripes),
        bytes_read=sum(rows) * source.row_bytes,
        task_bytes=TASK_BYTES + max(reading, merging * cost.state),
    )


def reading_bytes(source: Source, n_rows: int, nonfinite: Policy) -> int:
    """Bytes of the rows a task holds while it works on one block, of the `n_rows` it reads."""
    block = source.largest_block * source.row_bytes
    checks = source.largest_block * (16 + source.width) + (block if nonfinite == "drop" else 0)
    checks += 2 * source.largest_block * source.row_bytes_along
    if isinstance(source, DaskSource):
        held = n_rows * (source.row_bytes + source.row_bytes_along)
        return held + block + checks  # a block off the network is copied
    if isinstance(source, ArraySource | FileSource | ArrayColumns | FileColumns):
        return block + checks
    return DECODING * block + min(DECODING * block, RETAINED_BYTES) + checks


def plan_pairs(
    label: str, left: Source, right: Source, squares: list[Square], cost: Footprint
) -> Plan:
    """Predict every tile of `squares`; a task holds the blocks of both sides of one square."""
    held = max(
        sum(
            (source.bounds[run.last] - source.bounds[run.first])
            * (source.row_bytes + source.row_bytes_along)
            for source, run in ((left, square.left), (right, square.right))
        )
        for square in squares
    )
    read = sum(
        (source.bounds[run.last] - source.bounds[run.first]) * source.row_bytes
        for square in squares
        for source, run in ((left, square.left), (right, square.right))
    )
    return Plan(
        label=label,
        n_rows=left.n_rows + right.n_rows,
        n_blocks=left.n_blocks * right.n_blocks,
        n_tasks=len(squares),
        bytes_read=read,
        task_bytes=TASK_BYTES + held + 3 * cost.state + cost.scratch,
    )
