"""Credentials stay in the environment: no URL may hold them, and no message tells them."""

import logging
import pickle

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

from bigkd import did
from bigkd.cli import commands
from bigkd.engine.schedulers import open_runner
from bigkd.errors import InputError, JobFileError, StoreError, without_secrets
from bigkd.io import (
    TiledArray,
    is_store,
    load_array,
    load_dataset,
    open_labelled,
    open_rows,
    open_tiled,
    remove_store,
    save_dataset,
    save_state,
    store_kind,
)
from bigkd.io.urls import plain_location, url_problem
from bigkd.jobs import load_job
from bigkd.jobs.failures import told
from bigkd.summaries import Mean
from tests.engine.helpers import generated, reduce

SECRET = "abcd/EFGH+1234"
URLS = [
    f"s3://AKIA:{SECRET}@bucket/x",
    f"https://bucket.host/x.zarr?X-Amz-Signature={SECRET}",
    f"https://host/x#{SECRET}",
    f"s3://{SECRET}@bucket/x",
    f"simplecache::s3://u:{SECRET}@bucket/x",
]
SMALL = xr.Dataset({"x": ("r", np.arange(3.0))})


@pytest.mark.parametrize("url", URLS)
def test_url_problem__shows_nothing_of_the_url(url):
    problem = url_problem(url)
    assert "bucket" not in problem
    assert not any(part in problem for part in SECRET.split("/"))
    with pytest.raises(InputError, match=r"^x is a .*Credentials come from the environment"):
        plain_location(url, name="x")


@pytest.mark.parametrize(
    "location", ["a/b?c#d@e", "/data/x@2.zarr", "s3://bucket/key", "tcp://10.0.0.1:8786", "C:\\x?"]
)
def test_url_problem__lets_plain_ones_pass(location):
    assert url_problem(location) is None
    assert plain_location(location) == location


def tiled(path):
    return TiledArray(
        path=path, name="d", dims=("a",), shape=(2,), tile=(2,), chunk=(2,), token="t"
    )  # fmt: skip


def run_on(scheduler):
    with open_runner(scheduler):
        pass


ENTRANCES = {
    "open_rows": lambda url: open_rows(url, name="rows"),
    "weights": lambda url: open_rows(np.ones((3, 2)), name="rows", weights=url),
    "open_labelled": lambda url: open_labelled(url, name="rows"),
    "load_array": lambda url: load_array(url, name="rows"),
    "load_dataset": lambda url: load_dataset(url, kind="k"),
    "store_kind": store_kind,
    "is_store": is_store,
    "open_tiled": lambda url: open_tiled(url, kind="k"),
    "save_dataset": lambda url: save_dataset(SMALL, url, kind="k"),
    "save_state": lambda url: save_state(url, (np.ones(3),), token="t"),
    "remove_store": remove_store,
    "TiledArray": lambda url: tiled(url).begin(),
    "matrix": lambda url: did.matrix(np.ones((3, 9)), dims=("t",), output=url),
    "checkpoint": lambda url: reduce(Mean(width=3), generated(20, 10), checkpoint=url),
    "scheduler": run_on,
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_urls__with_secrets_are_refused_everywhere(entrance):
    for url in URLS[:3]:
        with pytest.raises(InputError, match="which may be secret") as caught:
            ENTRANCES[entrance](url)
        assert SECRET not in str(caught.value)


JOB = """\
modes:
  test: TEST
  reference: b.npy
output: {store: STORE}
run: {scheduler: "SCHEDULER", checkpoint: CHECKPOINT}
"""
PLACES = {"TEST": "a.npy", "STORE": "out.zarr", "SCHEDULER": "sync", "CHECKPOINT": "kept"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("url", URLS[:2])
def test_job_file__refuses_urls_with_secrets(tmp_path, place, url):
    text = JOB
    for name, value in {**PLACES, place: f"'{url}'" if place != "SCHEDULER" else url}.items():
        text = text.replace(name, value)
    (tmp_path / "job.yaml").write_text(text)
    with pytest.raises(JobFileError, match=r"line \d: .*which may be secret") as caught:
        load_job(tmp_path / "job.yaml")
    assert SECRET not in str(caught.value)


def test_job_file__does_not_show_a_url_in_the_wrong_place(tmp_path):
    (tmp_path / "job.yaml").write_text(f"modes:\n  test: a\n  reference: b\n  seed: '{URLS[0]}'\n")
    with pytest.raises(JobFileError, match="seed") as caught:
        load_job(tmp_path / "job.yaml")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ("modes", URLS[0], "b.npy"),
        ("modes", "a.npy", "b.npy", "--out", URLS[1]),
        ("modes", "a.npy", "b.npy", "--checkpoint", URLS[0]),
        ("modes", "a.npy", "b.npy", "--scheduler", f"tcp://u:{SECRET}@host:1"),
        ("show", URLS[0]),
        ("run", URLS[0]),
        ("summarize", URLS[0], "--out", "x.zarr", "--kernel", "gaussian:1"),
    ],
)
def test_command_line__does_not_show_urls_with_secrets(arguments):
    found = CliRunner().invoke(commands, ["--debug", *arguments])
    assert found.exit_code == 2
    assert "Error" in found.stderr
    assert SECRET not in found.output


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("SOME_TOKEN", "tok")
    monkeypatch.setenv("DASK_TLS_KEY", __file__)


def test_without_secrets__hides_what_the_environment_calls_a_secret(environment):
    assert without_secrets(f"a {SECRET}, b {SECRET!r}") == "a ***, b '***'"
    assert without_secrets("x=abcd%2FEFGH%2B1234&y") == "x=***&y"
    assert without_secrets(f"tok of {__file__}") == f"tok of {__file__}"  # short; a file
    assert without_secrets(f"GET {URLS[1]}, then") == "GET https://bucket.host/x.zarr?*** then"
    assert without_secrets("at 's3://me:pw@bucket/x'") == "at 's3://***@bucket/x'"
    plain = "s3://bucket/x is missing? Pass s3://bucket/y, mail a@b.c"
    assert without_secrets(plain) == plain


@pytest.mark.parametrize(
    ("name", "value", "said", "shown"),
    [
        ("DB_PASS", "pass-word", "pass-word", "***"),
        ("PGPASSWD", "pass-word", "pass-word", "***"),
        ("LDAP_PASSPHRASE", "pass-word", "pass-word", "***"),
        ("GOOGLE_CREDENTIALS", "cred-ential", "cred-ential", "***"),
        ("HTTP_AUTHORIZATION", "Basic Zm9v", "Basic Zm9v", "***"),
        ("AZURE_STORAGE_CONNECTION_STRING", f"Name=x;AccountKey={SECRET}==;Suffix=y",
         f"x: {SECRET}==; y", "x: ***; y"),
        ("FSSPEC_S3", f'{{"key": "AKIA-1234", "secret": "{SECRET}"}}',
         f"AKIA-1234 with {SECRET}", "*** with ***"),
        ("SOME_KEY", "8letters", "8letters", "***"),
        ("SOME_KEY", "7letter", "7letter", "7letter"),
        ("SOME_KEY", "/abcdefgh", "/abcdefgh", "***"),
        ("COMPASS_ROSE", "north-west", "north-west", "north-west"),
        ("DATA", "keys: /etc/hosts and so", "/etc/hosts and so", "/etc/hosts and so"),
    ],
)  # fmt: skip
def test_without_secrets__knows_a_secret_by_its_name(monkeypatch, name, value, said, shown):
    monkeypatch.setenv(name, value)
    assert without_secrets(said) == shown


def test_without_secrets__hides_all_of_the_longer_of_two(monkeypatch):
    monkeypatch.setenv("ONE_TOKEN", "abcdefgh")
    monkeypatch.setenv("OTHER_TOKEN", "abcdefgh-and-more")
    assert without_secrets("abcdefgh-and-more") == "***"


def test_errors__hide_secrets_of_those_they_quote(environment):
    error = StoreError(f"refused (ClientError: {SECRET} is no key)")
    assert str(error) == "refused (ClientError: *** is no key)"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is StoreError
    assert str(again) == str(error)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError, "server said ***"),
        (StoreError, "server said ***"),
        (RuntimeError, "internal error: RuntimeError: server said ***"),
    ],
)
def test_told__hides_secrets_in_what_is_said_of_a_comparison(environment, error, said):
    assert told(error(f"server said {SECRET}")) == said


@pytest.mark.parametrize("error", [RuntimeError, OSError, StoreError, KeyboardInterrupt])
def test_command_line__hides_secrets_in_what_it_prints(environment, monkeypatch, error):
    def fail(path):
        logging.getLogger("bigkd.some").warning("signed with %s", SECRET)
        failure = error(f"server said {SECRET}")
        failure.add_note(f"a note of {SECRET}")
        raise failure

    monkeypatch.setattr("bigkd.cli.job_commands.store_kind", fail)
    found = CliRunner().invoke(commands, ["--debug", "show", "x"])
    assert found.exit_code in (1, 4, 130)
    assert "signed with ***" in found.stderr
    assert "Traceback" in found.stderr
    assert SECRET not in found.output
