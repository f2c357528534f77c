"""What each command prints and writes."""

import json
import re

import numpy as np
import pytest
import xarray as xr
from pydantic import TypeAdapter

from bigkd import __version__, errors, finc
from bigkd.cli import compare_commands
from bigkd.cli.checked import checked
from bigkd.cli.kernels import parse_kernel
from bigkd.cli.reporting import Lines
from bigkd.engine import Event
from bigkd.io import load_dataset
from bigkd.jobs import Job
from bigkd.jobs.base import Part
from bigkd.jobs.comparisons import ModesPart
from bigkd.jobs.kernels import KernelField
from bigkd.jobs.rows import RowsPart
from bigkd.jobs.schema import OutputPart, RunPart
from bigkd.kernels import Epanechnikov, Matern, Polynomial, Triangle

FAST = ("--kernel", "gaussian:3", "--n-frequencies", "50", "--n-modes", "4", "--scheduler", "sync")
PAIR = ("modes", "test.npy", "reference.npy", *FAST)


def test_modes__prints_a_table_that_is_not_cut(bigkd, folder):
    done = bigkd(*PAIR)
    assert done.exit_code == 0
    assert "Modes of test.npy (160 rows) against reference.npy (200 rows)" in done.stdout
    assert "gaussian kernel (sigma 3), 50 frequencies, rho 1, method finc" in done.stdout
    assert re.search(
        r"\n +0 +0\.\d{4} ± 0\.\d{4} +0\.005 +\* +0\.\d+ +0\.\d+ +1\d\d, ", done.stdout
    )
    assert "1 of 4 modes significant (*) at alpha 0.01" in done.stdout
    assert "…" not in done.stdout
    assert "\x1b" not in done.stdout
    assert "top rows of reference: 200 of 200 rows after" in done.stderr


def test_modes__prints_one_json_object_and_nothing_else(bigkd, folder):
    done = bigkd(*PAIR, "--json", "--out", "result.zarr", "--n-top", 3)
    record = json.loads(done.stdout)
    stored = load_dataset(folder / "result.zarr", kind="modes")
    assert record["store"] == "result.zarr"
    assert record["n_significant"] == 1
    assert record["mmd2"] == float(stored["mmd2"])
    assert record["attrs"]["n_rows_test"] == 160
    assert [mode["eigenvalue"] for mode in record["modes"]] == stored["eigenvalue"].values.tolist()
    first = record["modes"][0]
    assert len(first["top_index_test"]) == 3
    assert first["significant"] is True
    assert {"standard_error", "p_value", "frequency_test", "frequency_reference"} <= set(first)


def test_modes__json_has_null_for_what_is_no_number(bigkd, folder):
    np.save("few.npy", np.zeros((2, 4)))
    done = bigkd("modes", "test.npy", "few.npy", *FAST, "--json", "--n-top", 4)
    assert done.exit_code == 0
    assert "NaN" not in done.stdout
    assert json.loads(done.stdout)["modes"][0]["top_score_reference"][2:] == [None, None]


def test_modes__is_what_the_function_returns(bigkd, folder):
    bigkd(
        *PAIR, "--out", "result.zarr", "--rho", 2, "--seed", 5, "--sampling", "orthogonal",
        "--alpha", 0.1, "--n-draws", 49, "--block-rows", 70, "--n-top", 2, "--nonfinite", "drop",
    )  # fmt: skip
    direct = finc.modes(
        "test.npy", "reference.npy", kernel=finc.ScaledRule("auto").shape.with_length(3.0),
        n_frequencies=50, n_modes=4, rho=2.0, seed=5, sampling="orthogonal", alpha=0.1, n_draws=49,
        block_rows=70, n_top=2, nonfinite="drop", scheduler="sync",
    )  # fmt: skip
    stored = load_dataset(folder / "result.zarr", kind="modes")
    del stored.attrs["test"], stored.attrs["reference"]
    xr.testing.assert_identical(stored, direct)


@pytest.mark.parametrize(
    ("arguments", "attrs"),
    [
        (["--kernel", "median", "--bandwidth-factor", "0.5"], {"bandwidth_factor": 0.5}),
        (["--bandwidth-factor", "2"], {"bandwidth_factor": 2.0, "kernel": "gaussian"}),
        (["--kernel", "laplace:median"], {"kernel": "laplace", "bandwidth_factor": 1.0}),
        (["--method", "ken"], {"method": "ken"}),
    ],
)
def test_modes__choose_the_kernel(bigkd, folder, arguments, attrs):
    done = bigkd("modes", "test.npy", "reference.npy", "--n-frequencies", 50, "--json", *arguments)
    record = json.loads(done.stdout)
    assert attrs.items() <= record["attrs"].items()


def test_modes__has_an_option_for_every_key_of_a_job():
    options = {parameter.name for parameter in compare_commands.modes.params}
    for part in (ModesPart, OutputPart, RunPart):
        of_files = {"progress_log", "history", "report", "keep_summaries"}
        keys = set(part.model_fields) - of_files
        assert keys <= options, part
    assert set(RowsPart.model_fields) - {"path"} <= options


def test_modes__quiet_prints_nothing(bigkd, folder):
    done = bigkd(*PAIR, "--quiet", "--out", "result.zarr")
    assert (done.exit_code, done.output) == (0, "")
    assert (folder / "result.zarr").exists()


def test_modes__progress_goes_to_a_file_or_nowhere(bigkd, folder):
    assert "rows after" not in bigkd(*PAIR, "--progress", "none").stderr
    done = bigkd(*PAIR, "--progress", "log.jsonl", "--json")
    assert done.stderr == ""
    last = json.loads((folder / "log.jsonl").read_text().splitlines()[-1])
    assert last["done"] == last["total"] == 200


def test_modes__progress_bar_stays_off_stdout(bigkd, folder):
    done = bigkd(*PAIR, "--progress", "bar", "--json")
    json.loads(done.stdout)


def test_modes__sheet(bigkd, folder):
    pytest.importorskip("PIL")
    np.save("pictures.npy", np.zeros((160, 5, 5), np.uint8))
    done = bigkd(*PAIR, "--sheet", "new/modes.png", "--images", "pictures.npy")
    assert done.exit_code == 0
    assert (folder / "new" / "modes.png").read_bytes()[:4] == b"\x89PNG"
    assert "Wrote the contact sheet to new/modes.png." in done.stderr


def test_modes__overwrite_is_asked_for(bigkd, folder):
    once = (*PAIR, "--out", "result.zarr")
    assert bigkd(*once).exit_code == 0
    refused = bigkd(*once)
    assert refused.exit_code == 2
    assert "result.zarr exists already; pass --overwrite" in refused.stderr
    assert bigkd(*once, "--overwrite").exit_code == 0


def test_modes__fails_if_significant(bigkd, folder):
    assert bigkd(*PAIR, "--fail-if-significant").exit_code == 3
    same = ("modes", "test.npy", "test.npy", *FAST)
    assert bigkd(*same, "--fail-if-significant").exit_code == 0


def test_run__carries_out_a_job_file(bigkd, folder):
    (folder / "job.toml").write_text(
        "[modes]\ntest = 'test.npy'\nreference = 'reference.npy'\nn_frequencies = 50\n"
        "kernel = {name = 'gaussian', sigma = 3.0}\n[output]\nstore = 'result.zarr'\n"
        "[run]\nprogress_log = 'log.jsonl'\n"
    )
    done = bigkd("run", "job.toml", "--scheduler", "sync")
    assert done.exit_code == 0
    assert "1 of 10 modes significant" in done.stdout
    assert done.stderr == "Wrote the result to result.zarr.\n"
    assert (folder / "log.jsonl").exists()
    assert bigkd("run", "job.toml", "--json", "--fail-if-significant").exit_code == 3
    assert bigkd("run", "job.toml", "--scheduler", "slurm").exit_code == 2


def test_show__prints_what_was_printed_before(bigkd, folder):
    done = bigkd(*PAIR, "--out", "result.zarr")
    assert bigkd("show", "result.zarr").stdout == done.stdout
    shown = json.loads(bigkd("show", "result.zarr", "--json").stdout)
    assert shown["attrs"]["kernel"] == "gaussian"


def test_summaries__from_rows_to_a_comparison(bigkd, folder):
    made = bigkd("summarize", "test.npy", "--out", "a.zarr", *FAST[:4], "--scheduler", "sync")
    assert made.exit_code == 0
    assert "Summary of test.npy: 160 rows of width 4 (0 dropped, 0 skipped)" in made.stdout
    like = ("--like", "a.zarr", "--name", "old", "--json", "--progress", "none")
    record = json.loads(bigkd("summarize", "reference.npy", "--out", "b.zarr", *like).stdout)
    assert record["attrs"]["name"] == "old"
    added = bigkd("add-rows", "b.zarr", "reference.npy", "--json", "--quiet")
    assert json.loads(added.stdout)["attrs"]["n_rows"] == 400
    assert added.stderr == ""
    assert bigkd("show", "b.zarr").stdout.startswith("Summary of old: 400 rows of width 4")

    compared = bigkd("compare", "new=a.zarr", "old=b.zarr", "--out", "c.zarr", "--n-modes", 3)
    assert compared.exit_code == 0
    assert re.search(r"\nnew +old +1 of 3 +0\.\d+ ± ", compared.stdout)
    assert bigkd("show", "c.zarr").stdout == compared.stdout
    pairs = json.loads(bigkd("show", "c.zarr", "--json").stdout)["pairs"]
    assert [(pair["test"], pair["reference"]) for pair in pairs] == [
        ("new", "old"), ("new", "others"), ("old", "new"), ("old", "others"),
    ]  # fmt: skip
    assert len(pairs[0]["eigenvalue"]) == 3
    assert {path.suffix for path in folder.iterdir()} == {".npy", ".zarr"}


def test_summaries__overwrite_is_asked_for(bigkd, folder):
    make = ("summarize", "test.npy", "--out", "a.zarr", *FAST[:4])
    assert bigkd(*make).exit_code == 0
    assert bigkd(*make).exit_code == 2
    assert bigkd(*make, "--overwrite").exit_code == 0
    assert bigkd("add-rows", "a.zarr", "test.npy", "--out", "a.zarr").exit_code == 2
    assert bigkd("compare", "a=a.zarr", "b=a.zarr", "--out", "a.zarr").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "a.zarr", "b.zarr"], "expected NAME=PATH; got 'a.zarr'"),
        (["compare", "a=a.zarr", "a=b.zarr"], "two paths are called 'a'"),
        (["compare", "a=a.zarr"], "at least two summaries; got 1"),
        (["compare", "a=a.zarr", "others=a.zarr"], "'others' names the mixture"),
        (
            ["summarize", "test.npy", "--out", "x", "--like", "a.zarr", "--seed", "1"],
            "like=... fixes",
        ),
        (["summarize", "test.npy", "--out", "x", "--kernel", "gauss:1"], "Did you mean gaussian?"),
        (["add-rows", "a.zarr", "wide.npy"], "have 5"),
    ],
)
def test_summaries__refuse(bigkd, folder, arguments, message):
    np.save("wide.npy", np.zeros((9, 5)))
    bigkd("summarize", "test.npy", "--out", "a.zarr", *FAST[:4])
    done = bigkd(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_main__knows_its_version_and_exit_codes(bigkd):
    assert bigkd("--version").stdout == f"bigkd, version {__version__}\n"
    assert "75   another job writes the same output" in bigkd("--help").stdout
    for command in ("modes", "run", "show", "summarize", "add-rows", "compare"):
        assert bigkd(command, "--help").exit_code == 0


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("triangle:2", Triangle(2.0)),
        ("epanechnikov:median", finc.ScaledRule("median", 0.5, Epanechnikov(1.0))),
        ("polynomial:1,0,-2.5", Polynomial((1.0, 0.0, -2.5))),
        ("matern:1.5:2", Matern(1.5, 2.0)),
    ],
)
def test_parse_kernel__gives_what_a_job_file_holds(text, kernel):
    given = parse_kernel(text, 0.5 if "median" in text else None)
    assert TypeAdapter(KernelField).validate_python(given).build() == kernel


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gauss", "--kernel must be auto, median, or one of gaussian, laplace"),
        ("gaussian", "--kernel gaussian needs gaussian:SIGMA; got 'gaussian'"),
        ("matern:1.5", "needs matern:NU:LENGTH_SCALE; got 'matern:1.5'"),
        ("gaussian:wide", "--kernel gaussian:wide: sigma must be a number; got 'wide'"),
        ("matern:auto:1", "nu must be a number; got 'auto'"),
        ("triangle", "--kernel triangle needs triangle:RADIUS; got 'triangle'"),
        ("polynomial", "needs polynomial:C0,C1,..., the coefficients from the constant on; got"),
        ("polynomial:0:1", "needs polynomial:C0,C1"),
        ("polynomial:0,x", "each coefficient must be a number; got 'x'"),
        ("covariance_gaussian:1", "needs a matrix; write it in a job file"),
    ],
)
def test_parse_kernel__refuses(text, message):
    with pytest.raises(errors.InputError, match=re.escape(message)):
        parse_kernel(text, None)


@pytest.mark.parametrize(
    ("part", "data", "message"),
    [
        (Job, {"modes": {"test": "a"}}, "REFERENCE is missing"),
        (Job, {"modes": {"test": {"path": ""}, "reference": "b"}}, "TEST must be a path"),
        (RunPart, {"scheduler": "slurm"}, "--scheduler must be 'sync'"),
        (OutputPart, {"sheet": "a.pdf"}, "the picture's file must end in"),
        (ModesPart, {"test": "a", "reference": "b", "n_modes": 0}, "--n-modes must be greater"),
    ],
)
def test_checked__names_options(part: type[Part], data, message):
    with pytest.raises(errors.InputError, match=re.escape(message)):
        checked(part, data)


def test_lines__are_few(capsys):
    lines = Lines()
    for second in range(31):
        lines(Event("pass", second, 30, float(second)))
    lines(Event("pass", 30, 30, 31.0))
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == [
        "10", "20", "30",
    ]  # fmt: skip
