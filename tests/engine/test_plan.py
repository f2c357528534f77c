import re

import dask.array as da
import numpy as np
import pytest

from bigkd.engine import Settings, open_session
from bigkd.engine.memory import plan_pass
from bigkd.engine.stripes import Stripe, cut_stripes
from bigkd.errors import InputError, MemoryPlanError
from bigkd.io import open_rows
from bigkd.protocols import Footprint
from bigkd.summaries import KernelSum, Mean, SecondMoment
from tests.engine.helpers import generated, reduce, reduce_pairs, unreadable


def kernel(x, y):
    return x @ y.T


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_plan__refuses_before_anything_is_read(scheduler):
    message = (
        "second moments: one task needs 16.12 GB (rows, temporaries and summary); a worker thread "
        "has 1.00 GB. Use smaller block_rows, or fewer n_frequencies where there are any (second "
        "moments fall with their square), or give each worker thread at least 16.12 GB."
    )
    with pytest.raises(MemoryPlanError, match=f"^{re.escape(message)}$"):
        reduce(
            SecondMoment(width=20_000),
            unreadable(10**9, 10**6),
            label="second moments",
            scheduler=scheduler,
            memory_limit="1 GB",
        )


def test_plan__refuses_pairs_before_anything_is_read():
    with pytest.raises(MemoryPlanError, match=r"pairs: one task needs 0\.05 GB"):
        reduce_pairs(KernelSum(kernel=kernel), unreadable(10**6, 10**5), memory_limit=10**7)


def test_plan__allows_what_fits_to_the_byte():
    source, summary = generated(10, 5), Mean(width=3)
    with open_session(Settings(scheduler="sync")) as session:
        session.reduce(summary, source, label="pass")
    (plan,) = session.plans
    reduce(summary, source, memory_limit=plan.task_bytes)
    with pytest.raises(MemoryPlanError):
        reduce(summary, source, memory_limit=plan.task_bytes - 1)


@pytest.mark.parametrize("limit", ["a lot", "-1", 0, -5])
def test_settings__refuse_a_memory_limit_that_is_none(limit):
    with pytest.raises(InputError, match="memory_limit must be"):
        Settings(memory_limit=limit)


@pytest.mark.parametrize("bad", [{"nonfinite": "ignore"}, {"stall_seconds": 0.0}])
def test_settings__refuse_what_means_nothing(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        Settings(**bad)


def test_plan__counts_the_pass():
    with open_session(Settings(scheduler="sync")) as session:
        session.reduce(Mean(width=3), generated(1_000, 7), label="the pass")
    (plan,) = session.plans
    assert plan.label == "the pass"
    assert (plan.n_rows, plan.n_blocks, plan.n_tasks) == (1_000, 143, 1)
    assert plan.bytes_read == 1_000 * 3 * 4


COST = Footprint(state=10**9, scratch=10**8, row_cost=10**6)


def task_bytes(source, n_stripes, *, exact=True, nonfinite="raise", cost=COST, distributed=False):
    step = source.n_blocks // n_stripes
    stripes = [Stripe(at, at + step) for at in range(0, n_stripes * step, step)]
    return plan_pass(
        "x", source, stripes, cost, exact=exact, nonfinite=nonfinite, distributed=distributed
    ).task_bytes


# 0.1 GB for an update, and 1 GB for each state, of which three more come and go on a cluster
@pytest.mark.parametrize(
    ("n_stripes", "exact", "here", "elsewhere"),
    [
        (1, True, 1.1, 1.1),
        (2, True, 3.0, 6.0),
        (100, True, 3.1, 6.1),
        (400, True, 3.1, 6.1),
        (1_000, True, 4.1, 7.1),
        (1, False, 1.1, 1.1),
        (100, False, 8.0, 11.0),
    ],
)
def test_plan__counts_states_that_wait(n_stripes, exact, here, elsewhere):
    source = generated(1_000, 1)
    found = [
        task_bytes(source, n_stripes, exact=exact, distributed=distributed) / 1e9
        for distributed in (False, True)
    ]
    assert found == pytest.approx([here, elsewhere], abs=0.03)


def test_plan__counts_rows_as_they_are_held(tmp_path):
    rows = np.zeros((4_000, 1_000), dtype=np.float32)
    np.save(tmp_path / "x.npy", rows)
    little = Footprint(state=8, scratch=8, row_cost=1)
    file = open_rows(tmp_path / "x.npy", name="x", block_rows=1_000)
    dask = open_rows(da.from_array(rows, chunks=(1_000, -1)), name="x")
    base = task_bytes(file, 1, cost=little)
    assert task_bytes(file, 1, cost=little, nonfinite="drop") - base == 4_000_000
    assert task_bytes(dask, 1, cost=little) - base == 4 * 4_000_000
    decoded = task_bytes(generated(4_000, 1_000, width=1_000), 1, cost=little)
    assert decoded - base == 5 * 4_000_000


def test_plan__does_not_depend_on_the_number_of_rows():
    sizes = [cut_stripes(generated(n, 1_000), row_cost=10**8) for n in (10**4, 10**5, 10**6)]
    plans = [
        plan_pass("x", generated(n, 1_000), stripes, COST, exact=True, nonfinite="raise")
        for n, stripes in zip((10**4, 10**5, 10**6), sizes, strict=True)
    ]
    few, some, many = (plan.task_bytes for plan in plans)
    assert few == some == many - COST.state  # chapters, of which there is one more than before
