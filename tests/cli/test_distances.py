"""Distances, tests and coresets on the command line."""

import json
import re

import numpy as np
import pytest
import xarray as xr

from bigkd import coreset, distance
from bigkd.cli import coreset_commands, distance_commands
from bigkd.io import load_dataset
from bigkd.jobs.comparisons import CoresetPart, DistanceMatrixPart, DistancePart, TwoSamplePart
from bigkd.jobs.rows import CollectionPart, RowsPart, WeightedRowsPart
from bigkd.jobs.schema import RunPart
from bigkd.kernels import Gaussian, Laplace

FAST = ("--kernel", "gaussian:3", "--scheduler", "sync")
PAIR = ("test.npy", "reference.npy", *FAST)


@pytest.fixture
def weights(folder):
    """Path of weights for the test set."""
    np.save("w.npy", np.random.default_rng(1).random(160))
    return "w.npy"


@pytest.mark.parametrize(
    ("command", "part", "rows", "left_out"),
    [
        (distance_commands.distance, DistancePart, CollectionPart, set()),
        (distance_commands.two_sample, TwoSamplePart, WeightedRowsPart, set()),
        (distance_commands.distance_matrix, DistanceMatrixPart, CollectionPart, {"weights",
                                                                                 "vectors"}),
        (coreset_commands.coreset, CoresetPart, WeightedRowsPart, set()),
    ],
)  # fmt: skip
def test_commands__have_an_option_for_every_key(command, part, rows, left_out):
    options = {parameter.name for parameter in command.params}
    assert set(part.model_fields) <= options
    assert set(RunPart.model_fields) - {"progress_log"} <= options
    assert set(RowsPart.model_fields) - {"path"} <= options
    for name in set(rows.model_fields) - {"path"} - left_out:
        assert {name} <= options or {f"x_{name}", f"y_{name}"} <= options


def test_distance__prints_its_promise_and_why_the_method_was_chosen(bigkd, folder):
    done = bigkd("distance", *PAIR)
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "Distance of test.npy (160 rows) from reference.npy (200 rows)\n"
        "gaussian kernel (sigma 3), weights divided by their sum\n"
    )
    assert re.search(r"\ndistance +0\.\d+, between 0\.\d+ and 0\.\d+\n", done.stdout)
    assert re.search(r"\ndistance squared +0\.\d+ ± \S+ \(rounding\)\n", done.stdout)
    assert re.search(r"\nmethod +exact \(cheapest for eps=0.01: exact \S+ s", done.stdout)
    assert "test  " not in done.stdout

    sampled = bigkd("distance", *PAIR, "--method", "rff", "--delta", "0.05", "--n-frequencies", 99)
    assert "gaussian kernel (sigma 3), 99 frequencies" in sampled.stdout
    assert re.search(r"\(broken with probability 0.05, standard error 0\.\d+\)", sampled.stdout)


def test_distance__is_what_the_function_returns(bigkd, folder, weights):
    done = bigkd(
        "distance", "test.npy", "reference.npy", "--kernel", "laplace:2", "--x-weights", weights,
        "--no-normalize", "--method", "rff", "--eps", "0.1", "--delta", "0.05", "--sizing", "value",
        "--n-frequencies", 64, "--seed", 4, "--block-rows", 70, "--nonfinite", "drop",
        "--out", "result.zarr", "--json", "--scheduler", "sync",
    )  # fmt: skip
    direct = distance.kernel_distance(
        "test.npy", "reference.npy", kernel=Laplace(2.0), x_weights=weights, normalize=False,
        method="rff", eps=0.1, delta=0.05, sizing="value", n_frequencies=64, seed=4, block_rows=70,
        nonfinite="drop", scheduler="sync",
    )  # fmt: skip
    stored = load_dataset(folder / "result.zarr", kind="distance")
    record = json.loads(done.stdout)
    assert record["store"] == "result.zarr"
    assert record["distance"] == float(direct["distance"])
    assert record["attrs"]["x"] == stored.attrs.pop("x") == "test.npy"
    del stored.attrs["y"]
    xr.testing.assert_identical(stored, direct)


def test_distance__with_a_test_and_thresholds(bigkd, folder):
    tested = ("distance", *PAIR, "--test", "--n-permutations", 99)
    done = bigkd(*tested, "--alpha", "0.02", "--out", "result.zarr", "--fail-if-rejected")
    assert done.exit_code == 3
    assert "\ntest              p = 0.01: one source is rejected at alpha 0.02 (exact, 99 perm" in (
        done.stdout
    )
    assert "Wrote the result to result.zarr." in done.stderr
    assert bigkd("show", "result.zarr").stdout == done.stdout
    shown = json.loads(bigkd("show", "result.zarr", "--json").stdout)
    assert shown["rejected"] is True
    assert shown["standard_error"] is None

    same = ("distance", "test.npy", "test.npy", *FAST, "--fail-above", "0.001")
    assert bigkd(*same, "--test", "--n-permutations", 9, "--fail-if-rejected").exit_code == 0
    assert bigkd("distance", *PAIR, "--fail-above", "0.001", "--quiet").exit_code == 3
    assert bigkd("distance", *PAIR, "--fail-above", "2").exit_code == 0


def test_distance__that_is_negative_is_explained(bigkd, folder):
    np.save("a.npy", np.array([[0.0], [1.0], [1.9]]))
    np.save("b.npy", np.array([[0.5], [1.5]]))
    kernel = ("--kernel", "polynomial:0,-1", "--scheduler", "sync")
    done = bigkd("distance", "a.npy", "test.npy", *kernel)
    assert done.exit_code == 2
    done = bigkd("distance", "a.npy", "b.npy", *kernel)
    assert done.exit_code == 0
    assert "negative, since the kernel is not positive definite here" in done.stdout
    assert "polynomial kernel (coefficients [0.0, -1.0])" in done.stdout


def test_two_sample__prints_and_judges(bigkd, folder, weights):
    test = ("two-sample", *PAIR, "--x-weights", weights, "--n-permutations", 99, "--seed", 2)
    done = bigkd(*test, "--out", "result.zarr", "--fail-if-rejected")
    assert done.exit_code == 3
    assert done.stdout.startswith(
        "Do test.npy (160 rows) and reference.npy (200 rows) come from one source?\n"
        "gaussian kernel (sigma 3), 500 frequencies, method features\n"
        "p = 0.01: one source is rejected at alpha 0.05. "
    )
    assert bigkd("show", "result.zarr").stdout == done.stdout
    direct = distance.two_sample_test(
        "test.npy", "reference.npy", kernel=Gaussian(3.0), x_weights=weights, n_permutations=99,
        seed=2, scheduler="sync",
    )  # fmt: skip
    record = json.loads(bigkd(*test, "--json").stdout)
    assert record["p_value"] == float(direct["p_value"])
    assert record["statistic"] == float(direct["statistic"])


def test_distance_matrix__prints_every_pair(bigkd, folder):
    many = ("distance-matrix", "test.npy", "old=reference.npy", "same=./test.npy", *FAST)
    done = bigkd(*many, "--out", "result.zarr")
    assert done.exit_code == 0
    assert "Distances of 3 collections (160, 200, 160 rows)" in done.stdout
    assert re.search(r"\ntest.npy +old +0\.\d+ +0\.\d+ +\S+\n", done.stdout)
    assert re.search(r"\ntest.npy +same +0 ", done.stdout)
    assert bigkd("show", "result.zarr").stdout == done.stdout
    shown = json.loads(bigkd("show", "result.zarr", "--json").stdout)
    assert [(pair["x"], pair["y"]) for pair in shown["pairs"]] == [
        ("test.npy", "old"), ("test.npy", "same"), ("old", "same"),
    ]  # fmt: skip
    assert shown["n_rows"] == {"test.npy": 160, "old": 200, "same": 160}
    stored = load_dataset(folder / "result.zarr", kind="distance-matrix")
    assert shown["pairs"][2]["distance"] == float(stored["distance"].sel(x="old", y="same"))
    assert bigkd(*many, "--fail-above", "0.01", "--quiet").exit_code == 3


def test_coreset__writes_rows_and_prints_how_near_they_are(bigkd, folder, weights):
    make = ("coreset", "test.npy", "--size", 12, "--weights", weights, *FAST)
    done = bigkd(*make, "--out", "result.zarr", "--measure", "exact")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "12 rows for the 160 of test.npy\n"
        "gaussian kernel (sigma 3), greedy selection, nonnegative weights\n"
    )
    assert re.search(r"\ndistance to all rows 0\.\d+, at most .*measured: exact\)", done.stdout)
    assert done.stdout.endswith("and 2 lighter ones\n")
    assert bigkd("show", "result.zarr").stdout == done.stdout
    stored = load_dataset(folder / "result.zarr", kind="coreset")
    direct = coreset.thin(
        "test.npy", 12, kernel=Gaussian(3.0), weights=weights, measure="exact", scheduler="sync"
    )
    del stored.attrs["data"]
    xr.testing.assert_identical(stored, direct)
    np.testing.assert_array_equal(stored["rows"], np.load("test.npy")[stored["index"]])
    record = json.loads(bigkd("show", "result.zarr", "--json").stdout)
    assert [point["index"] for point in record["points"]] == stored["index"].values.tolist()
    assert record["distance_to_full"] == float(stored["distance_to_full"])
    assert "not measured" in bigkd(*make, "--measure", "none").stdout


def test_coreset__draws_at_random(bigkd, folder):
    draw = ("coreset", "test.npy", "--size", 5, "--method", "sample", "--scheduler", "sync")
    done = bigkd(*draw, "--replacement")
    assert "random rows, with replacement\ndistance to all rows at most" in done.stdout
    record = json.loads(bigkd(*draw, "--seed", 3, "--json").stdout)
    direct = coreset.sample("test.npy", 5, seed=3, scheduler="sync")
    assert [point["index"] for point in record["points"]] == direct["index"].values.tolist()


def test_run__carries_out_a_distance_every_night(bigkd, folder):
    (folder / "job.yaml").write_text(
        "distance:\n  x: test.npy\n  y: reference.npy\n  test: {n_permutations: 99}\n"
        "  kernel: {name: gaussian, sigma: 3}\noutput: {store: night.zarr}\n"
    )
    run = ("run", "job.yaml", "--scheduler", "sync")
    once = bigkd(*run, "--fail-above", "2")
    assert once.exit_code == 0
    assert bigkd("show", "night.zarr").stdout == once.stdout
    assert bigkd(*run, "--fail-above", "2", "--fail-if-rejected", "--quiet").exit_code == 3
    refused = bigkd(*run, "--fail-if-significant")
    assert refused.exit_code == 2
    assert "--fail-if-significant is for jobs that make modes" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["distance", *PAIR, "--alpha", "0.1"], "--alpha goes with --test"),
        (["distance", *PAIR, "--fail-if-rejected"], "is for jobs that make a test"),
        (["distance", *PAIR, "--fail-above", "nan"], "--fail-above must be finite"),
        (["distance", *PAIR, "--eps", "0"], "--eps must be greater than 0; got 0.0."),
        (["distance", *PAIR, "--delta", "1"], "--delta must be less than 1; got 1.0."),
        (["distance", *PAIR, "--n-frequencies", "1"], "--n-frequencies must be greater than or"),
        (["distance", *PAIR, "--coreset-size", "0"], "--coreset-size must be greater than or"),
        (["distance", *PAIR, "--method", "fft"], "Invalid value for '--method'"),
        (["distance", *PAIR, "--x-weights", "reference.npy"], "weights of x must be one"),
        (["distance", *PAIR, "--y-weights", ""], "--y-weights must be a path, as text; got ''"),
        (["distance", *PAIR, "--x-vectors", "test.npy"], "they must be equal"),
        (["distance", *PAIR, "--shape", "current"], "X has shape, which is for mesh files"),
        (["distance", "a.off", *PAIR[1:], "--test"], "the command has a test, which exchanges"),
        (["distance", "", *PAIR[1:]], "X must be a path"),
        (["distance", *PAIR[:2], "--kernel", "auto"], "--kernel has the rule 'auto'"),
        (["distance", *PAIR[:2], "--kernel", "triangl:1"], "Did you mean triangle?"),
        (["distance", *PAIR, "--bandwidth-factor", "2"], "--kernel has a factor"),
        (["distance", *PAIR, "--resume"], "nothing to resume from"),
        (["distance", *PAIR, "--test", "--n-permutations", "0"], "--n-permutations must be great"),
        (["two-sample", *PAIR, "--n-groups", "3"], "--n-groups must be greater than or equal to"),
        (["distance-matrix", "test.npy"], "COLLECTIONS must be two or more collections"),
        (["distance-matrix", "test.npy", "x/test.npy"], "two collections are called 'test.npy'"),
        (["distance-matrix", "a=", "b=test.npy"], "needs arguments PATH or NAME=PATH; got 'a='"),
        (["distance-matrix", "a=test.npy", "b=b.off", "--columns", "x"], "b is a mesh file"),
        (["coreset", "test.npy", *FAST], "--size is missing: rows to choose."),
        (["coreset", "test.npy", "--size", "0"], "--size must be greater than or equal to 1"),
        (["coreset", "test.npy", "--size", "5", "--replacement"], "has replacement, which goes"),
        (
            ["coreset", "test.npy", "--size", "5", "--kernel", "triangle:1"],
            "thin needs a positive definite kernel",
        ),
        (["coreset", "test.npy", "--size", "5", "--weights", "w.npy"], "w.npy does not exist"),
    ],
)
def test_commands__refuse(bigkd, folder, arguments, message):
    done = bigkd(*arguments)
    assert done.exit_code == (4 if "does not exist" in message else 2)
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.output


@pytest.mark.parametrize("command", ["distance", "two-sample", "distance-matrix", "coreset"])
def test_help__names_every_kernel(bigkd, command):
    text = " ".join(bigkd(command, "--help").stdout.split())
    for kernel in ("gaussian:2.5", "matern:1.5:2.0", "triangle:2", "epanechnikov:2",
                   "polynomial:0,1", "laplace:median"):  # fmt: skip
        assert kernel in text
    assert "[default: median]" in text


def test_process__exit_codes_of_a_distance(start, folder):
    (folder / "job.yaml").write_text(
        "distance:\n  x: {path: test.npy, block_rows: 40}\n  y: reference.npy\n"
        "  kernel: {name: gaussian, sigma: 3}\nrun: {scheduler: sync}\n"
    )
    process = start("run", "job.yaml", "--json", "--fail-above", "0.01")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert json.loads(out)["attrs"]["n_rows_x"] == 160
    assert "Traceback" not in err
