"""Rehearsals: the plans of a run, without the run."""

import math

import dask.array as da
import numpy as np
import psutil
import pytest
import zarr

from bigkd.engine import Rehearsal, RehearsalEnded, Settings, map_rows, open_session, timing
from bigkd.engine.cost import TaskCosts, Workers, pass_cost
from bigkd.engine.ledger import open_ledger
from bigkd.engine.stripes import cut_segments
from bigkd.errors import DataError, MemoryPlanError
from bigkd.io import open_rows
from bigkd.summaries import KernelSum, Mean, Reservoir
from tests.engine.helpers import everything, generated, unreadable
from tests.engine.toys import PAIRS, ROWS, X, Y

N = 4_000


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(timing, "READ_ROWS", 40)


@pytest.fixture
def stage():
    return Rehearsal(workers=Workers(n_threads=1), thread_bytes=10**9)


def kernel(x, y):
    return x @ y.T


def rehearsed_and_run(stage, call, **settings):
    """Plans of `call` on a session that plans, and on one that runs."""
    plans = []
    for scheduler in (stage, "sync"):
        with open_session(Settings(scheduler=scheduler, **settings)) as session:
            try:
                call(session)
            except RehearsalEnded:
                assert scheduler is stage
            plans.append(session.plans)
    return plans


def in_files(rows, folder):
    np.save(folder / "x.npy", rows)
    return open_rows(folder / "x.npy", name="x", block_rows=20)


def in_zarr(rows, folder):
    zarr.create_array(str(folder / "x.zarr"), data=rows, chunks=(20, 3))
    return open_rows(folder / "x.zarr", name="x", block_rows=20)


def in_dask(rows, folder):
    del folder
    return open_rows(da.from_array(rows, chunks=(20, 3)), name="x")


def weighted(rows, folder):
    del folder
    return open_rows(rows, name="x", block_rows=20, weights=np.ones(len(rows)))


@pytest.mark.usefixtures("small_stripes")
@pytest.mark.parametrize("opened", [in_files, in_zarr, in_dask, weighted])
@pytest.mark.parametrize(
    "summary",
    [everything(3), Reservoir(width=3, size=100, seed=0)],
    ids=["exact", "reservoir"],
)
def test_rehearsal__has_the_plan_of_a_pass(stage, tmp_path, opened, summary):
    source = opened(np.random.default_rng(0).normal(size=(N, 3)).astype("f4"), tmp_path)

    def call(session):
        found = session.reduce(summary, source, label="pass")
        assert int(found.tally.rows) == N

    planned, run = rehearsed_and_run(stage, call)
    assert planned == run
    (found,) = stage.passes
    assert found.plan == run[0]
    assert found.unit == "rows"
    assert found.costs.sizes == [20] * (N // 20)
    assert found.costs.seconds_each > 0
    assert found.costs.state_bytes > 0
    assert stage.task_seconds > 0


@pytest.mark.usefixtures("small_squares")
@pytest.mark.parametrize("both", [True, False])
def test_rehearsal__has_the_plan_of_pairs(stage, both):
    left, right = generated(200, 20), generated(300, 20) if both else None

    def call(session):
        session.reduce_pairs(KernelSum(kernel=kernel), left, right, label="pairs")

    planned, run = rehearsed_and_run(stage, call)
    assert planned == run
    assert sum(stage.passes[0].costs.sizes) == (200 * 300 if both else (200**2 + 10 * 20**2) / 2)
    assert stage.passes[0].unit == "pairs"


@pytest.mark.usefixtures("small_tiles")
def test_rehearsal__has_the_plans_of_tiles_and_writes_nowhere(stage, tmp_path):
    x, y = (open_rows(rows, name="x", block_rows=7) for rows in (X, Y))

    def call(session):
        with session.scratch("maps", beside=tmp_path / "d.zarr") as scratch:
            maps = [
                session.store_rows(ROWS, one, f"{scratch}/{name}.zarr", label="rows")
                for name, one in (("x", x), ("y", y))
            ]
            opened = [open_rows(one.data_path, name="maps") for one in maps]
            assert opened[0].n_rows == len(X)
            flat = [generated(one.n_rows, 5) for one in opened]
            how = {"label": "pairs", "name": "d", "dims": ("kind", "a", "b")}
            session.store_pairs(PAIRS, *flat, str(tmp_path / "d.zarr"), **how)

    with open_session(Settings(scheduler=stage)) as session:
        with pytest.raises(RehearsalEnded):
            call(session)
        planned = session.plans
    assert not list(tmp_path.iterdir())
    with open_session(Settings(scheduler="sync")) as session:
        call(session)
    assert planned == session.plans
    assert [one.unit for one in stage.passes] == ["rows", "rows", "pairs"]
    assert sum(stage.passes[2].costs.sizes) == len(X) * len(Y)


def test_rehearsal__of_a_lazy_array_has_its_shape(stage):
    source = generated(N, 20)
    rows = map_rows(lambda x: x[:, :2], source, width=2, dtype=np.dtype("f8"))
    with open_session(Settings(scheduler=stage)) as session:
        found = session.compute(rows, label="mapping")
    np.testing.assert_array_equal(found[20:40], found[:20])
    assert found.shape == (N, 2)
    assert stage.passes[0].plan.n_tasks == N // 20


def test_rehearsal__reads_the_first_blocks_only_and_once(stage, tmp_path):
    source = generated(N, 30, log=tmp_path / "log")
    with open_session(Settings(scheduler=stage)) as session:
        for _ in range(3):
            session.reduce(Mean(width=3), source, label="pass")
            session.reduce_pairs(KernelSum(kernel=kernel), source, label="pairs")
    assert source.reads() == [0, 30]


def test_rehearsal__gives_a_pass_as_many_rows_as_its_state_holds(stage, tmp_path):
    source = generated(N, 30, log=tmp_path / "log")
    summary = Reservoir(width=3, size=500, seed=0)
    with open_session(Settings(scheduler=stage)) as session:
        state = session.reduce(summary, source, label="sample").state
    index = np.asarray(summary.finalize(state)[1])
    assert len(np.unique(index)) == 500
    assert index.max() < N
    assert len(source.reads()) == 2


def test_rehearsal__counts_rows_that_are_dropped(stage):
    rows = np.ones((N, 3))
    rows[::2] = np.nan
    source = open_rows(rows, name="x", block_rows=20)
    with open_session(Settings(scheduler=stage, nonfinite="drop")) as session:
        tally = session.reduce(Mean(width=3), source, label="pass").tally
    assert (int(tally.rows), int(tally.dropped)) == (N // 2, N // 2)


@pytest.mark.usefixtures("small_stripes")
def test_rehearsal__knows_what_is_kept_and_keeps_nothing(stage, tmp_path):
    rows, folder = np.random.default_rng(0).normal(size=(80, 3)), tmp_path / "kept"
    array = zarr.create_array(str(tmp_path / "x.zarr"), data=rows[:60], chunks=(10, 3))

    def call(session):
        session.reduce(everything(3), open_rows(array, name="x", block_rows=10), label="pass")

    with open_session(Settings(scheduler=stage, checkpoint=folder)) as session:
        call(session)
    assert not folder.exists()
    assert stage.passes[0].n_reused == 0
    with open_session(Settings(scheduler="sync", checkpoint=folder)) as session:
        call(session)
    array.append(rows[60:])
    before = sorted(folder.rglob("*"))
    planned = Rehearsal(workers=Workers(n_threads=1), thread_bytes=10**9)
    with open_session(Settings(scheduler=planned, checkpoint=folder)) as session:
        call(session)
    assert sorted(folder.rglob("*")) == before
    with open_ledger() as ledger:
        run = rehearsed_and_run(planned, call, checkpoint=folder)
    assert run[0] == run[1]
    assert planned.passes[0].n_reused == ledger.rows_reused == 60
    assert planned.passes[0].costs.keep_seconds > 0


def test_rehearsal__refuses_what_a_worker_has_no_memory_for():
    stage = Rehearsal(workers=Workers(n_threads=1), thread_bytes=10**6)
    with (
        open_session(Settings(scheduler=stage)) as session,
        pytest.raises(MemoryPlanError, match=r"a worker thread has 0\.00 GB"),
    ):
        session.reduce(Mean(width=3), unreadable(100, 10), label="pass")
    assert stage.passes[0].costs is None


def test_rehearsal__ends_where_this_machine_has_no_memory_for_a_task(stage, monkeypatch):
    memory = type("Memory", (), {"available": 10**6})
    monkeypatch.setattr(psutil, "virtual_memory", memory)
    with (
        open_session(Settings(scheduler=stage)) as session,
        pytest.raises(RehearsalEnded, match=r"pass: a task needs .* this machine has 0\.00"),
    ):
        session.reduce(Mean(width=3), unreadable(100, 10), label="pass")
    assert stage.passes[0].costs is None


def test_rehearsal__meets_the_faults_of_the_first_rows(stage):
    source = open_rows(np.full((100, 3), np.nan), name="x", block_rows=20)
    with (
        open_session(Settings(scheduler=stage)) as session,
        pytest.raises(DataError, match="x: row 0"),
    ):
        session.reduce(Mean(width=3), source, label="pass")
    assert stage.reading_failed


def costs_of(n_tasks, **changes):
    given = {"seconds_each": 2.0, "state_bytes": 10**9, "merge_seconds": 1.0, **changes}
    return TaskCosts(sizes=[1] * n_tasks, **given)


def test_cost__of_one_thread_is_all_its_work():
    found = pass_cost(costs_of(64, keep_seconds=0.5), Workers(n_threads=1))
    n_segments = len(cut_segments(64))
    work = 64 * 2.0 + (n_segments - 1) * 1.0 + n_segments * 0.5
    assert found.work_seconds == work
    assert found.seconds == pytest.approx(work, rel=0.01)
    assert found.n_tasks == 64 + 2 * n_segments - 1
    assert found.bytes_moved == 0
    assert found.bytes_kept == n_segments * 10**9


@pytest.mark.parametrize("kind", [{}, {"chained": False}, {"exact": False, "chained": False}])
def test_cost__falls_with_workers_until_the_chains_are_what_is_left(kind):
    costs = costs_of(2_048, merge_seconds=0.01, **kind)
    seconds = [
        pass_cost(costs, Workers(n_threads=n, apart=n > 1)).seconds for n in (1, 4, 16, 10**4)
    ]
    assert seconds[0] > 3.5 * seconds[1] > 3.5 * seconds[2]
    assert seconds[3] >= pass_cost(costs, Workers(n_threads=10**4)).chain_seconds


def test_cost__counts_states_that_are_sent():
    found = pass_cost(costs_of(4), Workers(n_threads=4, apart=True, link_bytes=1e9))
    assert found.bytes_moved == 4 * 10**9
    assert found.chain_seconds == pytest.approx(2.0 + 3 * (1.0 + 1.0))
    assert found.seconds >= found.chain_seconds + 1.0


def test_cost__counts_what_is_left_of_a_pass():
    workers = Workers(n_threads=1)
    whole, none = (pass_cost(costs_of(64, n_reused=n), workers) for n in (0, 64))
    rest = pass_cost(costs_of(64, n_reused=61), workers)
    assert set(none) == {0}
    assert rest.work_seconds == 3 * 2.0 + 1.0  # of one segment, and a join with what is kept
    assert rest.n_tasks == 3 + 1
    assert rest.seconds < whole.seconds / 10


def test_cost__of_tiles_has_no_joins():
    found = pass_cost(costs_of(100, joined=False), Workers(n_threads=10, apart=True))
    assert found.n_tasks == 100
    assert found.work_seconds == 200.0
    assert math.isclose(found.seconds, 20.0, rel_tol=0.2)
