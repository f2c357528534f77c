"""Every place has a job that loads, and a page whose commands and links are right."""

import re

import click
import pytest

from bigkd.cli import commands as bigkd
from bigkd.jobs import load_job
from bigkd.jobs.clusters import memory_per_thread
from tests.deploy.pages import DEPLOY, JOBS, PAGES, PLACES, commands

STARTERS = {"sudo", "podman"}


def identity(path):
    return str(path.relative_to(DEPLOY))


@pytest.mark.parametrize("path", JOBS, ids=identity)
def test_job__loads(path):
    job = load_job(path)
    assert "drift" in job.comparisons
    assert job.output.history is not None
    assert job.output.report is not None
    memory_per_thread(job.cluster)


def test_places__have_each_a_page_and_a_job_of_its_kind():
    kinds = {path.parent.name: load_job(path).cluster.kind for path in JOBS}
    assert set(kinds) == set(PLACES)
    assert kinds["slurm"] == "slurm"
    assert kinds["kubernetes"] in {"kubernetes", "address"}
    assert kinds["cluster"] == "address"
    assert kinds["cuda"] == "cuda"
    index = (DEPLOY / "README.md").read_text("utf-8")
    for place in PLACES:
        assert f"[{place}]({place}/README.md)" in index
        assert (DEPLOY / place / "README.md").exists()


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_page__links_to_what_there_is(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_page__says_what_the_command_line_accepts(page):
    found = []
    for words in commands(page):
        starts = [at for at, word in enumerate(words) if word.rpartition("/")[2] == "bigkd"]
        if starts and (words[0] in STARTERS or starts[-1] == 0):
            found.append(words[starts[-1] :])
    assert found or page.parent.name == "kubernetes"
    for _, name, *options in found:
        command = bigkd.get_command(click.Context(bigkd), name)
        assert command is not None, name
        command.make_context(name, options)


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != DEPLOY], ids=identity)
def test_page__names_only_files_of_its_folder(page):
    """What is copied from the clone is there."""
    copied = re.findall(r"\"\$BIGKD\"/(\S+)", page.read_text("utf-8"))
    for pattern in copied:
        assert list(DEPLOY.parent.glob(pattern)), pattern


def test_index__lists_every_exit_code():
    rows = re.findall(r"^\| (\d+) \|", (DEPLOY / "README.md").read_text("utf-8"), re.M)
    assert sorted(map(int, rows)) == [0, 1, 2, 3, 4, 5, 75, 130]
    listed = re.findall(r"^  (\d+) ", bigkd.epilog, re.M)
    assert sorted(map(int, listed)) == [0, 1, 2, 3, 4, 5, 75, 130]


def test_pages__hold_no_secret():
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            assert not re.search(
                r"AKIA[A-Z0-9]{12}|BEGIN [A-Z ]*PRIVATE KEY", path.read_text("utf-8")
            )
