"""Workers and schedulers that die or hang at a random moment of a night."""

import os
import random
import signal

import pytest
from distributed import Client

from bigkd.engine import stripes
from bigkd.errors import ClusterError
from bigkd.jobs import load_job, run_job
from tests.cluster.conftest import started
from tests.cluster.harm import send, wait_for, wait_until_stopped
from tests.cluster.processes import scheduler, worker
from tests.survival.harness import look, night, start, write_job
from tests.survival.test_struck import assert_same

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

EVENTS = 30
"""So many times the progress of a run shows, at least."""


@pytest.fixture
def cluster():
    with started() as client:
        yield client


@pytest.fixture(autouse=True)
def small_stripes(monkeypatch):
    monkeypatch.setattr(stripes, "STRIPE_WORK", 1)


class Strike:
    """A progress function that strikes once."""

    def __init__(self, strike, at):
        self._strike, self._at, self.seen = strike, at, 0

    def __call__(self, event):
        self.seen += 1
        if self.seen == self._at:
            self._strike()


def pids(client):
    return list(client.run(os.getpid).values())


def addresses(client):
    return set(client.scheduler_info()["workers"])


def until_done(work, progress):
    """Run the job until it goes through, as cron would, and how often it did not."""
    for failures in range(5):
        try:
            return run_job(load_job(work / "job.yaml"), progress=progress), failures
        except ClusterError:
            continue
    raise AssertionError("it never went through")


@pytest.mark.parametrize("seed", range(4))
def test_workers_killed__change_nothing(nights, evening, cluster, seed):
    number, n_victims = seed % 2, 1 + seed // 2
    work = evening(number)
    write_job(work, cluster.scheduler_info()["address"])
    victims = pids(cluster)[:n_victims]
    strike = Strike(lambda: send(victims, signal.SIGKILL), random.Random(seed).randint(1, EVENTS))
    record, _ = until_done(work, strike)
    assert strike.seen >= EVENTS
    assert record.exit_code == 0
    write_job(work)
    assert_same(look(work), nights[number].after)


def test_a_worker_that_hangs__is_given_up_and_the_next_run_goes_on(nights, evening):
    work = evening(1)
    with started() as client:
        write_job(work, client.scheduler_info()["address"])
        text = (work / "job.yaml").read_text().replace("run: {", "run: {stall_seconds: 3, ")
        (work / "job.yaml").write_text(text)
        victims, before = pids(client), addresses(client)
        strike = Strike(lambda: send(victims, signal.SIGSTOP), 12)
        while strike.seen < 12:  # a machine that is slow at first looks like one that hangs
            with pytest.raises(ClusterError, match="nothing finished"):
                run_job(load_job(work / "job.yaml"), progress=strike)
        send(victims, signal.SIGKILL)
        wait_for(lambda: len(addresses(client) - before) == 2)
        write_job(work, client.scheduler_info()["address"])
        record, _ = until_done(work, False)
    assert record.exit_code == 0
    write_job(work)
    assert_same(look(work), nights[1].after)


def test_the_scheduler_killed__ends_the_run_and_the_next_one_goes_on(
    nights, evening, tmp_path, monkeypatch
):
    """A client, a scheduler and a worker in a process of their own each."""
    work = evening(1)
    monkeypatch.setenv("STOP_IN", str(work / "nightly.checkpoint"))
    monkeypatch.setenv("STOP_AFTER", "60")
    module = "tests.survival.stopping_worker"
    with scheduler(tmp_path) as address, worker(tmp_path, address, module=module) as stopping:
        with Client(address, set_as_default=False) as client:
            victim = client.run_on_scheduler(os.getpid)
        write_job(work, address)
        running = start(work)
        wait_until_stopped(stopping.pid)
        send([victim], signal.SIGKILL)
        send([stopping.pid], signal.SIGCONT)
        ended = running.finish()
    assert ended.code == 5, ended.stderr
    assert "Traceback" not in ended.stderr.rpartition("Error: ")[2]
    write_job(work)
    assert night(work).code == 0
    assert_same(look(work), nights[1].after)
