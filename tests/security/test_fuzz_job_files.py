"""Whatever a job file holds, it is a job or a JobFileError."""

import json

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bigkd.cli import commands
from bigkd.errors import JobFileError
from bigkd.jobs import Job, load_job
from tests.jobs.test_load import FULL_TOML, FULL_YAML
from tests.security.fuzzing import changed, examples

NIGHTLY = """\
data:
  tonight: /data/tonight.zarr
  reference: {path: s3://bucket/reference.zarr, missing: skip}
comparisons:
  drift:
    distance: {x: tonight, y: reference, kernel: median, test: true}
    fail_if: {rejected: true, above: 0.1}
  new_modes:
    modes: {test: tonight, reference: reference}
    fail_if: {significant: true}
    sheet: modes.html
    images: tonight_images.zarr
output: {store: nightly, history: nightly_history.zarr, report: nightly.html}
cluster: {kind: local, n_workers: 4}
run: {memory_limit: 2 GiB}
"""

randoms = st.randoms(use_true_random=False)

PIECES = [
    "modes", "distance", "comparisons", "data", "cluster", "history", "fail_if",
    "test", "reference", "output", "run", "kernel", "seed", ": ", ":", "\n",
    "\n  ", "\n    ", "- ", "[", "]", "{", "}", ", ", "!!", "!!python/name:os.system", "&a ", "*a",
    "<<", "|", ">", "'", '"', "#", "%", "@", "`", "---\n", "...\n", "? ", "= ", "[[", "]]", ".",
    "null", "~", "yes", "1e3", "0x1F", "1:30", "2026-01-01", ".inf", ".nan", "-1", "1_000", "\t",
    "\\u0000", "\0", "\x1b", "\ufeff", "\u2028", "é", "\U0001f600", "a.npy", "b.npy",
]  # fmt: skip


@pytest.fixture(scope="module", params=[".yaml", ".toml"])
def file(request, tmp_path_factory):
    return tmp_path_factory.mktemp("jobs") / f"job{request.param}"


def check(file):
    """The job, or None after the command line said what is wrong, too."""
    try:
        return load_job(file)
    except JobFileError:
        found = CliRunner().invoke(commands, ["run", str(file)])
        assert found.exit_code == 2
        assert found.stderr.startswith("Error: ")
        return None


@examples(60)
@given(text=st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_pieces_of_job_files__are_refused_or_read(file, text):
    file.write_text(text, encoding="utf-8")
    check(file)


@examples(40)
@given(content=st.binary(max_size=60))
def test_bytes__are_refused(file, content):
    file.write_bytes(content)
    assert check(file) is None


@examples(100)
@given(random=randoms, times=st.integers(1, 3))
def test_job_files__with_letters_changed_are_refused_or_read(file, random, times):
    text = FULL_TOML if file.suffix == ".toml" else random.choice([FULL_YAML, NIGHTLY])
    for _ in range(times):
        start = random.randrange(len(text))
        stop = start + random.choice([0, 0, 1, 3, 20])
        text = text[:start] + random.choice(["", *PIECES]) + text[stop:]
    file.write_text(text, encoding="utf-8")
    check(file)


@examples(100)
@given(random=randoms, times=st.integers(1, 3))
def test_job_files__with_values_changed_are_refused_or_read(file, random, times):
    document = yaml.safe_load(random.choice([FULL_YAML, NIGHTLY]))
    for _ in range(times):
        document = changed(document, random)
        if not document:
            break
    path = file.with_suffix(".yaml")
    path.write_text(json.dumps(document))
    check(path)


def test_the_full_job_files__are_jobs(file):
    for text in [FULL_TOML] if file.suffix == ".toml" else [FULL_YAML, NIGHTLY]:
        file.write_text(text)
        assert isinstance(check(file), Job)
