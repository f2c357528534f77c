import shutil
from typing import NamedTuple

import pytest

from tests.survival.harness import Seen, copy_of, grow, look, make_data, night, write_job


class Night(NamedTuple):
    """A night as it should be."""

    before: object  # a folder
    after: Seen
    changes: int


@pytest.fixture(scope="session")
def nights(tmp_path_factory):
    """Two nights that nothing disturbs, the second of a store that grew."""
    root = tmp_path_factory.mktemp("survival")
    work, found = root / "work", []
    work.mkdir()
    make_data(work)
    write_job(work)
    for number in range(2):
        if number:
            grow(work)
        before = copy_of(work, root / f"before{number}")
        ended = night(work)
        assert ended.code == 0, ended.stderr
        found.append(Night(before, look(work), ended.changes))
    return found


@pytest.fixture
def evening(nights):
    """Makes the folder of a night before its run, where the undisturbed one was."""
    work = nights[0].before.parent / "work"

    def prepared(number, *, report=True):
        copy_of(nights[number].before, work)
        if not report:  # which takes a third of the time
            text = (work / "job.yaml").read_text().replace(", report: nightly.html", "")
            (work / "job.yaml").write_text(text)
        return work

    yield prepared
    shutil.rmtree(work, ignore_errors=True)
