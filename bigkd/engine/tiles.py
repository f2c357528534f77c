"""Results larger than memory: of rows, or of pairs of rows, written by the tasks that make them.

A task makes one tile. How rows and pairs are cut into tiles depends on how many there are and on
what one costs, never on the cluster; tiles grow so that there are never more than `MOST_TILES`, but
a task holds only a part of its rows at a time.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.delayed import delayed

from bigkd.backends import to_host
from bigkd.config import BLOCK_BYTES, MAX_STRIPES, MEGABYTE, TASK_BYTES
from bigkd.engine.inputs import Raw, raw_blocks, read_rows
from bigkd.engine.memory import Plan, reading_bytes
from bigkd.engine.stripes import Stripe
from bigkd.engine.tasks import Job, Telling, prepared
from bigkd.engine.work import Run, node_of
from bigkd.errors import InputError, ShapeError
from bigkd.io import DaskSource, Source, TiledArray
from bigkd.io.sources import even_bounds
from bigkd.io.tiled import At
from bigkd.io.zarr_rows import ZarrSource
from bigkd.protocols import PairMap, RowMap, Rows

CHUNK_BYTES = 16 * MEGABYTE
"""What one chunk of rows aims at."""

PART_BYTES = 64 * MEGABYTE
"""Most bytes of a part of a tile of pairs, and of the rows of either side that it is made from."""

TILE_WORK = 20_000_000_000
"""Multiply-adds that one tile aims at: about a second, so that few pairs are shared out, too."""

MOST_TILES = MAX_STRIPES
"""Tiles of one array; beyond it they grow."""

REMEDY = "Describe rows with fewer numbers, such as fewer landmarks where there are any"


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """An array to be filled, and what fills it.

    Attributes
    ----------
    array
        What is written.
    jobs
        One for each collection, in blocks that are read at once.
    per_tile
        How many such blocks of each collection make a tile.
    step
        Rows that a row map is given at once.
    unit
        What is counted: ``"rows"``, or ``"pairs"``.
    plan
        What a task will need.
    """

    array: TiledArray
    jobs: tuple[Job, ...]
    per_tile: tuple[int, ...]
    step: int
    unit: str
    plan: Plan

    def runs(self, at: At) -> tuple[Stripe, ...]:
        """The blocks of each collection that a tile is made of."""
        parts = at[:1] if self.unit == "rows" else at[1:]
        return tuple(
            Stripe(number * size, min((number + 1) * size, job.source.n_blocks))
            for number, size, job in zip(parts, self.per_tile, self.jobs, strict=True)
        )

    def size(self, at: At) -> int:
        """Rows of a tile, or pairs."""
        pairs = zip(self.jobs, self.runs(at), strict=True)
        return math.prod(
            job.source.bounds[run.last] - job.source.bounds[run.first] for job, run in pairs
        )

    def positions(self) -> Iterator[At]:
        """Tiles, in order."""
        return np.ndindex(self.array.grid)

    @property
    def total(self) -> int:
        """Rows, or pairs, of all tiles."""
        return math.prod(job.source.n_rows for job in self.jobs)


def row_tiling(
    function: RowMap, source: Source, path: str, *, job: Job, token: str, label: str
) -> Tiling:
    """Tiles of the rows that `function` makes of those of `source`."""
    cost = function.footprint(1, source.itemsize)
    aim = min(TILE_WORK // max(1, cost.row_cost), BLOCK_BYTES // max(1, source.row_bytes))
    step = max(1, min(source.n_rows, aim, CHUNK_BYTES // max(1, cost.state)))
    block = step * max(1, aim // step)
    even = regular(source, block)
    per = -(-even.n_blocks // MOST_TILES)
    cost = function.footprint(step, source.itemsize)
    array = TiledArray(
        path=path,
        name="rows",
        dims=("row", *(f"axis_{at}" for at in range(len(function.row_shape)))),
        shape=(source.n_rows, *function.row_shape),
        tile=(min(source.n_rows, per * block), *function.row_shape),
        chunk=(step, *function.row_shape),
        token=token,
        compressed=False,
    )
    return Tiling(
        array=array,
        jobs=(job._replace(source=even),),
        per_tile=(per,),
        step=step,
        unit="rows",
        plan=_plan(label, [(source, even, per)], cost.scratch + 5 * cost.state, array.grid),
    )


def pair_tiling(
    function: PairMap,
    sources: Sequence[Source],
    path: str,
    *,
    jobs: Sequence[Job],
    token: str,
    label: str,
    name: str,
    dims: tuple[str, str, str],
) -> Tiling:
    """Tiles of the numbers that `function` makes of every pair of rows of two sources."""
    steps = _part(function, sources)
    even = [regular(source, step) for source, step in zip(sources, steps, strict=True)]
    per = _parts_per_tile([source.n_blocks for source in even])
    sizes = [
        min(source.n_rows, step * count)
        for source, step, count in zip(sources, steps, per, strict=True)
    ]
    shape = (function.n_values, *(source.n_rows for source in sources))
    cost = function.footprint(steps[0], steps[1], 8)
    own = cost.scratch + 2 * cost.state + 4 * 8 * function.n_values * sizes[0] * sizes[1]
    array = TiledArray(
        path=path,
        name=name,
        dims=dims,
        shape=shape,
        tile=(function.n_values, *sizes),
        chunk=(function.n_values, *sizes),
        token=token,
    )
    return Tiling(
        array=array,
        jobs=tuple(job._replace(source=one) for job, one in zip(jobs, even, strict=True)),
        per_tile=per,
        step=0,
        unit="pairs",
        plan=_plan(label, list(zip(sources, even, per, strict=True)), own, array.grid),
    )


def _part(function: PairMap, sources: Sequence[Source]) -> tuple[int, int]:
    """Rows of each side that are compared at once: as square as memory and the sides allow."""
    cost = function.footprint(1, 1, 8)
    pairs = max(1, min(TILE_WORK // max(1, cost.row_cost), PART_BYTES // max(1, cost.state)))
    most = [min(one.n_rows, max(1, PART_BYTES // max(1, one.row_bytes))) for one in sources]
    left = min(most[0], math.isqrt(pairs))
    right = min(most[1], pairs // left)
    return min(most[0], pairs // right), right


def _parts_per_tile(counts: Sequence[int]) -> tuple[int, ...]:
    """How many parts along each side make a tile."""
    side = 1
    while math.prod(-(-count // side) for count in counts) > MOST_TILES:
        side += 1
    return tuple(min(side, count) for count in counts)


def regular(source: Source, step: int) -> Source:
    """`source` in blocks of `step` rows; the last may be shorter.

    Raises
    ------
    InputError
        If some of its rows do not exist.
    """
    if source.skipped:
        raise InputError(
            f"{source.name}: {source.skipped} rows do not exist, and results with a place for each "
            f"row have none to leave out. Pass missing='fill', or mend the store."
        )
    bounds = even_bounds(source.n_rows, step)
    if isinstance(source, DaskSource):
        array = source.array.rechunk({0: step})
        return replace(source, array=array, bounds=bounds, known=None)
    return replace(source, bounds=bounds, known=None)


def fill_graph(tiling: Tiling, done: set[At], run: Run) -> tuple[Any, dict[str, int]]:
    """The delayed root that fills what is not `done`, and the size of each task's tile."""
    nodes = [node_of(job) for job in tiling.jobs]
    raws = [raw_blocks(job.source) for job in tiling.jobs]
    apply = functools.partial(delayed(fill), delayed(tiling.array, traverse=False), tiling.step)
    tasks, sizes = [], {}
    for at in tiling.positions():
        if at in done:
            continue
        key = f"tile-{run.name}-{'-'.join(map(str, at))}"
        sizes[key] = tiling.size(at)
        runs = tiling.runs(at)
        own = [
            None if raw is None else raw[stripe.first : stripe.last]
            for raw, stripe in zip(raws, runs, strict=True)
        ]
        tasks.append(apply(at, nodes, runs, own, dask_key_name=key))
    return delayed(len)(tasks), sizes


def check_graph(tiling: Tiling, before: dict[At, bytes], run: Run) -> Any:
    """The delayed root that tells which of the tiles finished `before` are whole, in order."""
    array = delayed(tiling.array, traverse=False)
    tasks = [
        delayed(check)(array, at, digest, tiling.size(at), run.topic)
        for at, digest in before.items()
    ]
    return delayed(list)(tasks)


def check(array: TiledArray, at: At, digest: bytes, size: int, topic: str | None) -> bool:
    """Whether a tile that was finished before is whole."""
    whole = array.is_whole(at, digest)
    telling = Telling(topic)
    telling.add(size if whole else 0)
    telling.send()
    return whole


def fill(
    array: TiledArray,
    step: int,
    at: At,
    jobs: Sequence[Job],
    runs: Sequence[Stripe],
    raws: Sequence[Sequence[Raw] | None],
) -> int:
    """Make one tile, and write it."""
    jobs = [prepared(job) for job in jobs]
    telling = Telling(jobs[0].topic)
    if len(jobs) == 1:
        array.write(at, _row_parts(jobs[0], runs[0], raws[0], step, telling))
    else:
        shape = tuple(cut.stop - cut.start for cut in array.region(at))
        array.write(at, [_pairs(jobs, runs, raws, shape, telling)])
    telling.send()
    return 1


def _row_parts(
    job: Job, run: Stripe, raws: Sequence[Raw] | None, step: int, telling: Telling
) -> Iterator[Any]:
    for rows in _blocks(job, run, raws):
        n_rows = rows.values.shape[0]
        for start in range(0, n_rows, step):
            stop = min(start + step, n_rows)
            part = Rows(*(None if one is None else one[start:stop, ...] for one in rows))
            yield _shaped(job, part, shape=(part.values.shape[0], *job.summary.row_shape))
            telling.add(part.values.shape[0])


def _pairs(
    jobs: Sequence[Job],
    runs: Sequence[Stripe],
    raws: Sequence[Sequence[Raw] | None],
    shape: tuple[int, ...],
    telling: Telling,
) -> np.ndarray[Any, Any]:
    tile = np.empty(shape)
    left_job, right_job = jobs
    top = 0
    for left in _blocks(left_job, runs[0], raws[0]):
        bottom, start = top + left.values.shape[0], 0
        for right in _blocks(right_job, runs[1], raws[1]):
            stop = start + right.values.shape[0]
            size = (shape[0], bottom - top, stop - start)
            tile[:, top:bottom, start:stop] = _shaped(left_job, left, right, shape=size)
            telling.add(size[1] * size[2])
            start = stop
        top = bottom
    return tile


def _blocks(job: Job, run: Stripe, raws: Sequence[Raw] | None) -> Iterator[Rows]:
    for at, block in enumerate(run.blocks):
        yield read_rows(job.source, block, None if raws is None else raws[at], job.nonfinite)


def _shaped(job: Job, *rows: Rows, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    made = to_host(job.summary(*rows))
    if made.shape != shape:
        raise ShapeError(
            f"{type(job.summary).__name__} made numbers of shape {made.shape} where {shape} was "
            f"promised."
        )
    return made


def _plan(
    label: str, sources: Sequence[tuple[Source, Source, int]], own: int, grid: tuple[int, ...]
) -> Plan:
    """What a task needs that reads collections, as they are stored, in even blocks."""
    reading = sum(_reading(stored, even, count) for stored, even, count in sources)
    return Plan(
        label=label,
        n_rows=sum(stored.n_rows for stored, _, _ in sources),
        n_blocks=math.prod(even.n_blocks for _, even, _ in sources),
        n_tasks=math.prod(grid),
        bytes_read=sum(stored.n_rows * stored.row_bytes for stored, _, _ in sources),
        task_bytes=TASK_BYTES + reading + own,
        remedy=REMEDY,
    )


def _reading(stored: Source, even: Source, count: int) -> int:
    """Bytes for one side: a block, of which the store decodes whole chunks.

    Of a Dask array all blocks of a tile are there, and the chunk that the last was cut from.
    """
    own = reading_bytes(even, count * even.largest_block, "raise")
    if isinstance(stored, DaskSource):
        return own + stored.largest_block * stored.row_bytes
    chunk = stored.array.chunks[0] if isinstance(stored, ZarrSource) else stored.largest_block
    touched = min(stored.n_rows, (-(-even.largest_block // chunk) + 1) * chunk)
    whole = replace(stored, bounds=even_bounds(stored.n_rows, touched))
    return max(own, reading_bytes(whole, touched, "raise"))
