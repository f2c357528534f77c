"""Subspaces that explain a distribution on the command line."""

import json
import re
import signal

import numpy as np
import pytest
import xarray as xr

from bigkd import mmdpca
from bigkd.cli import mmdpca_commands
from bigkd.cli.mmdpca_options import given_tempered
from bigkd.engine import graph, stripes
from bigkd.io import load_dataset
from bigkd.jobs.comparisons import (
    MmdpcaBackgroundPart,
    MmdpcaDistancePart,
    MmdpcaPart,
    MmdpcaProjectPart,
)
from bigkd.jobs.data import DataPart
from bigkd.jobs.schema import RunPart
from bigkd.kernels import Matern
from tests.cli.test_processes import finish
from tests.cluster.harm import wait_until_stopped

FIT = ("mmdpca", "rows.npy", "--k", 2, "--scheduler", "sync")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Working folder with rows, a field on a grid, a video, and bad data."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(200, 6)) * [5, 3, 2, 1, 1, 1]
    np.save("rows.npy", rows)
    np.save("plane.npy", rows[:, :2] @ generator.normal(size=(2, 6)))
    np.save("complex.npy", rows + 1j)
    np.save("one.npy", rows[0])
    rows[3, 1] = np.nan
    np.save("nan.npy", rows)
    video = generator.integers(180, 190, (30, 8, 10, 3)).astype(np.uint8)
    video[range(10), 2, range(10)] = 20
    np.save("video.npy", video)
    coords = {"time": np.arange(12), "lat": np.linspace(-60, 60, 9), "lon": np.linspace(0, 330, 14)}
    field = xr.DataArray(generator.random((12, 9, 14)), coords=coords, name="t")
    field[:, 2, 3] = np.nan
    field.to_dataset().to_zarr("field.zarr", zarr_format=3, consolidated=False)
    return tmp_path


@pytest.fixture
def fitted(bigkd, folder):
    """A stored fit of the rows."""
    assert bigkd(*FIT, "--out", "fit.zarr", "--quiet").output == ""
    return load_dataset("fit.zarr", kind="subspace")


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (mmdpca_commands.mmdpca, MmdpcaPart),
        (mmdpca_commands.mmdpca_project, MmdpcaProjectPart),
        (mmdpca_commands.mmdpca_distance, MmdpcaDistancePart),
        (mmdpca_commands.mmdpca_background, MmdpcaBackgroundPart),
    ],
)
def test_commands__have_an_option_for_every_key(command, part):
    options = {parameter.name for parameter in command.params}
    of_project = {"seed"} if part is MmdpcaProjectPart else set()
    assert set(part.model_fields) - of_project <= options
    assert set(DataPart.model_fields) - {"path"} <= options
    assert set(RunPart.model_fields) - {"progress_log"} <= options


def test_mmdpca__prints_components_and_what_is_known_of_them(bigkd, folder):
    done = bigkd(*FIT, "--out", "fit.zarr", "--progress", "none")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "Subspace of 200 rows of 6 features of rows.npy\n"
        "gauss kernel (a 1), not centred, weights none, method pairs\n"
        "component  eigenvalue   share  together\n"
    )
    assert re.search(r"\n +1 +0\.\d+ +62\.\d\d% +62\.\d\d%\n +2 +0\.\d+ +22\.\d\d% ", done.stdout)
    found = load_dataset("fit.zarr", kind="subspace")
    assert f"\nMMD^2 of rows and projections {float(found['mmd2']):.6g}; of PCA's " in done.stdout
    assert (
        f"\nof the nearest distribution in 2 dimensions at least {float(found['mmd2_lower']):.6g}, "
        f"at most {float(found['mmd2_upper']):.6g}\n"
    ) in done.stdout
    assert re.search(r"\nsine of the angle to the exact subspace about \de-1\d\n$", done.stdout)
    assert done.stderr == "Wrote the result to fit.zarr.\n"
    assert bigkd("show", "fit.zarr").stdout == done.stdout
    shown = json.loads(bigkd("show", "fit.zarr", "--json").stdout)
    direct = mmdpca.fit("rows.npy", k=2, scheduler="sync")
    assert [one["k"] for one in shown["components"]] == [1, 2]
    values = [one["eigenvalue"] for one in shown["components"]]
    assert values == direct["eigenvalue"].values.tolist()
    assert shown["mmd2"] == float(direct["mmd2"])
    assert shown["attrs"]["method"] == "pairs"
    assert "component" not in shown


def test_mmdpca__is_what_the_function_returns(bigkd, folder):
    done = bigkd(
        *FIT, "--kernel", "matern:1.5:4", "--center", "--method", "nystrom", "--n-landmarks", 40,
        "--n-directions", 4, "--n-points", 30, "--seed", 3, "--block-rows", 50, "--json",
        "--out", "fit.zarr",
    )  # fmt: skip
    direct = mmdpca.fit(
        "rows.npy", k=2, kernel=Matern(1.5, 4.0), center=True, method="nystrom", n_landmarks=40,
        n_directions=4, n_points=30, seed=3, block_rows=50, scheduler="sync",
    )  # fmt: skip
    record = json.loads(done.stdout)
    assert record["subspace_error"] == float(direct["subspace_error"])
    assert record["mmd2_upper"] is None
    assert record["store"] == "fit.zarr"
    found = load_dataset("fit.zarr", kind="subspace")
    assert found.attrs.pop("data") == "rows.npy"
    xr.testing.assert_identical(found, direct)
    text = bigkd("show", "fit.zarr").stdout
    how = "matern kernel (nu 1.5, length_scale 4), centred, weights none, method nystrom (40 land"
    assert f"\n{how}" in text
    assert re.search(r"\nMMD\^2 of rows and projections \S+ ± \S+; of PCA's ", text)
    assert re.search(r"\nof the nearest distribution in 2 dimensions at least \S+\n", text)


def test_mmdpca__without_mmds(bigkd, folder):
    done = bigkd(*FIT, "--no-mmd", "--progress", "none")
    assert "MMD" not in done.stdout
    assert "sine" in done.stdout
    assert "mmd2" not in json.loads(bigkd(*FIT, "--no-mmd", "--json").stdout)


def test_mmdpca__of_a_field_draws_maps(bigkd, folder):
    pytest.importorskip("PIL.Image")
    make = (
        "mmdpca", "field.zarr", "--k", 2, "--weights", "coslat", "--pictures", "maps.html",
        "--progress", "none",
    )  # fmt: skip
    done = bigkd(*make)
    assert done.stdout.startswith(
        "Subspace of 12 rows of 125 features (1 left out) of field.zarr\n"
    )
    assert done.stderr == "Wrote the pictures of the components to maps.html.\n"
    assert (folder / "maps.html").read_text(encoding="utf-8").count("<figure>") == 2
    assert bigkd(*make).exit_code == 2
    assert bigkd(*make, "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--fail-above", 0.7), 3),
        (("--fail-above", 0.8), 0),
        (("--fail-above", 0), 3),
        (("--fail-if-explained-below", 0.9), 3),
        (("--fail-if-explained-below", 0.8), 0),
        (("--fail-if-error-above", 1e-20), 3),
        (("--fail-if-error-above", 1e-6), 0),
        (("--fail-if-error-above", 1e-6, "--no-mmd"), 0),
    ],
)
def test_mmdpca__fails_beyond_thresholds(bigkd, folder, arguments, code):
    done = bigkd(*FIT, *arguments, "--quiet", "--out", "fit.zarr")
    assert done.exit_code == code
    assert done.output == ""
    assert load_dataset("fit.zarr", kind="subspace").sizes["k"] == 2


def test_mmdpca_project__prints_and_stores_scores(bigkd, folder, fitted):
    done = bigkd("mmdpca-project", "rows.npy", "fit.zarr", "--out", "scores.zarr")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "Scores of 200 rows of rows.npy on the components of fit.zarr\nsample "
    )
    assert done.stdout.endswith("and those of 190 others\n")
    assert bigkd("show", "scores.zarr").stdout == done.stdout
    direct = mmdpca.project("rows.npy", fitted).compute()
    stored = load_dataset("scores.zarr", kind="scores")
    xr.testing.assert_identical(stored["score"], direct)
    shown = json.loads(bigkd("show", "scores.zarr", "--json").stdout)
    assert shown["score"] == direct.values.tolist()
    assert shown["shape"] == {"sample": 200, "k": 2}


def test_mmdpca_distance__prints_and_judges(bigkd, folder, fitted):
    apart = ("mmdpca-distance", "rows.npy", "fit.zarr", "--scheduler", "sync")
    done = bigkd(*apart, "--out", "apart.zarr")
    assert done.stdout.startswith(
        "Rows of rows.npy and their projections on the components of fit.zarr\n"
        f"MMD^2     {float(fitted['mmd2']):.6g} ± 0\n"
    )
    assert done.stdout.endswith("\nmethod    exact\n")
    assert bigkd("show", "apart.zarr").stdout == done.stdout
    drawn = bigkd(*apart, "--method", "sample", "--n-points", "50")
    assert drawn.stdout.endswith("\nmethod    sample (50 drawn)\n")
    assert bigkd(*apart, "--fail-above", "0.7", "--quiet").exit_code == 3
    assert bigkd(*apart, "--fail-above", "0.8", "--quiet").exit_code == 0
    record = json.loads(bigkd(*apart, "--json").stdout)
    assert record["mmd2"] == pytest.approx(float(fitted["mmd2"]), rel=1e-9)


def test_mmdpca_background__prints_and_draws(bigkd, folder):
    image = pytest.importorskip("PIL.Image")
    make = ("mmdpca-background", "video.npy", "--k", 2, "--a", 5, "--scheduler", "sync")
    done = bigkd(*make, "--out", "background.zarr", "--picture", "background.png")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "Background of 30 frames of video.npy: median over time of 2 components\n"
        "gauss kernel (a 5), not centred, weights none, white 255, method gram\n"
        "grid y 8, x 10, channel 3; levels from 1"
    )
    assert done.stderr.endswith("Wrote the picture to background.png.\n")
    assert bigkd("show", "background.zarr").stdout == done.stdout
    direct = mmdpca.background("video.npy", k=2, a=5.0, scheduler="sync")
    record = json.loads(bigkd(*make, "--json").stdout)
    assert record["background"] == direct.values.tolist()
    drawn = np.asarray(image.open("background.png"))[::5, ::5]
    np.testing.assert_allclose(drawn, direct, atol=0.51)


def test_run__carries_out_jobs(bigkd, folder):
    (folder / "job.yaml").write_text(
        "mmdpca:\n  data: rows.npy\n  k: 2\n  kernel: {name: higher_moments, weights: [0, 1]}\n"
        "output: {store: night.zarr}\n"
    )
    once = bigkd("run", "job.yaml", "--scheduler", "sync")
    assert once.exit_code == 0
    assert "\nhigher_moments kernel (weights [0.0, 1.0]), not centred, " in once.stdout
    assert bigkd("show", "night.zarr").stdout == once.stdout
    again = ("run", "job.yaml", "--quiet", "--resume")
    assert bigkd(*again, "--fail-if-explained-below", "0.999").exit_code == 3
    assert bigkd(*again, "--fail-if-error-above", "0.1").exit_code == 0
    (folder / "job.yaml").write_text("mmdpca_project: {data: rows.npy, fit: night.zarr}\n")
    refused = bigkd(*again, "--fail-if-error-above", "1")
    assert refused.exit_code == 2
    assert "--fail-if-error-above is for jobs that make subspaces: mmdpca." in refused.stderr


@pytest.mark.slow
def test_process__killed_and_resumed_gives_the_same_bits(start, folder, bigkd, monkeypatch):
    make = (*map(str, FIT), "--method", "nystrom", "--n-landmarks", "50", "--block-rows", "10")
    process = start(*make, "--out", "result.zarr", stop_at=82)
    wait_until_stopped(process.pid)
    process.send_signal(signal.SIGKILL)
    code, out, _ = finish(process)
    assert (code, out) == (-signal.SIGKILL, "")
    assert not (folder / "result.zarr").exists()
    monkeypatch.setattr(stripes, "STRIPE_WORK", 100_000)  # as in the process
    restored, original = [], graph.restore
    monkeypatch.setattr(graph, "restore", lambda *given: restored.append(1) or original(*given))
    resumed = bigkd(*make, "--out", "result.zarr", "--resume")
    assert resumed.exit_code == 0
    assert "finished segments were there." in resumed.stderr
    assert len(restored) >= 2
    assert bigkd(*make, "--out", "whole.zarr").exit_code == 0
    both = [load_dataset(name, kind="subspace") for name in ("result.zarr", "whole.zarr")]
    xr.testing.assert_identical(*both)
    assert len({one["component"].values.tobytes() for one in both}) == 1


@pytest.mark.slow
@pytest.mark.cluster
def test_process__local_cluster_gives_the_same_bits(start, folder, bigkd, fitted):
    project = ("mmdpca-project", "rows.npy", "fit.zarr", "--block-rows", "40", "--quiet")
    code, _, err = finish(start(*project, "--scheduler", "local", "--out", "local.zarr"))
    assert code == 0, err
    assert bigkd(*project, "--scheduler", "sync", "--out", "sync.zarr").exit_code == 0
    both = [load_dataset(name, kind="scores") for name in ("local.zarr", "sync.zarr")]
    xr.testing.assert_identical(*both)
    assert len({one["score"].values.tobytes() for one in both}) == 1


def test_process__tells_of_bad_data_in_one_line(start, folder):
    code, out, err = finish(start("mmdpca", "nan.npy", "--k", "2", "--progress", "none"))
    assert (code, out) == (4, "")
    assert re.fullmatch(r"Error: \S+ row 3 .* is not finite.*\n", err)


PROJECT = ("mmdpca-project", "rows.npy")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mmdpca", "rows.npy"], "--k is missing: number of components."),
        ([*FIT, "--k", "0"], "--k must be greater than or equal to 1; got 0."),
        (
            [*FIT, "--k", "7"],
            "k=7 components were asked for, of 200 rows of 6 features; pass k of ",
        ),
        (["mmdpca", "plane.npy", "--k", "3"], "k=3 components were asked for, and the rows span 2"),
        ([*FIT, "--a", "0"], "--a must be greater than 0; got 0.0."),
        ([*FIT, "--a", "-1"], "--a must be greater than 0; got -1.0."),
        ([*FIT, "--a", "nan"], "--a must be a finite number; got nan."),
        (
            [*FIT, "--kernel", "gausss"],
            "--kernel must be gauss, laplace, poisson, kurtosis, or one ",
        ),
        ([*FIT, "--kernel", "gausss"], "got 'gausss'. Did you mean gauss?"),
        ([*FIT, "--kernel", "gaussian"], "--kernel gaussian needs gaussian:SIGMA; got 'gaussian'"),
        ([*FIT, "--kernel", "gaussian:0"], "--kernel must be greater than 0; got 0.0."),
        ([*FIT, "--kernel", "gaussian:median"], "sigma must be a number; got 'median'."),
        (
            [*FIT, "--kernel", "gaussian:2", "--a", "3"],
            "a goes with the kernels gauss, laplace and",
        ),
        ([*FIT, "--kernel", "moments:x"], "--kernel moments needs moments:W1,W2,..., a number for"),
        ([*FIT, "--kernel", "moments:0,-1"], "needs numbers that are finite, not negative and not"),
        ([*FIT, "--kernel", "triangle:2"], "kernel=Triangle(radius=2.0) is not positive definite"),
        (
            ["mmdpca", "complex.npy", "--k", "2"],
            "data has elements of type complex128; expected re",
        ),
        (["mmdpca", "nan.npy", "--k", "2"], "row 3 (row 3 of block 0) is not finite"),
        (["mmdpca", "one.npy", "--k", "1"], "data has shape (6,); rows need at least two dimensi"),
        (["mmdpca", "no.npy", "--k", "2"], "data: no.npy does not exist"),
        (["mmdpca", "", "--k", "2"], "DATA must be a path, as text; got ''."),
        (["mmdpca"], "Missing argument 'DATA'"),
        ([*FIT, "--weights", "cos"], "--weights must be none, coslat, or the path of a .npy file"),
        ([*FIT, "--weights", "coslat"], "'coslat' needs a coordinate called lat or latitude"),
        ([*FIT, "--weights", "rows.npy"], "weights must have one number for each feature, shape "),
        ([*FIT, "--weights", "no.npy"], "weights: no.npy does not exist"),
        ([*FIT, "--method", "fast"], "Invalid value for '--method': 'fast' is not one of 'auto', "),
        ([*FIT, "--method", "moments"], "method='moments' needs a kernel with finitely many momen"),
        (["mmdpca", "field.zarr", "--k", "2", "--dim", "tim"], "dim='tim' is not a dimension of "),
        ([*FIT, "--pictures", "a.png"], "images must have shape (n, y, x) or (n, y, x, channel)"),
        ([*FIT, "--pictures", "a.pdf"], "picture's file must end in .html or .png; got 'a.pdf'."),
        ([*FIT, "--resume"], "nothing to resume from: name the store with --out"),
        ([*FIT, "--out", "rows.npy"], "would be written over or into mmdpca.data"),
        ([*FIT, "--memory-limit", "1000"], "one task needs"),
        ([*FIT, "--fail-above", "nan"], "--fail-above must be finite and not negative; got nan."),
        ([*FIT, "--fail-if-explained-below", "-1"], "--fail-if-explained-below must be finite and"),
        ([*FIT, "--no-mmd", "--fail-above", "1"], "or an mmd2: mmdpca, unless told not to measure"),
        ([*FIT, "--no-mmd", "--fail-if-explained-below", "1"], "is for jobs that make shares: mmd"),
        ([*PROJECT, "no.zarr"], "no.zarr holds no bigkd store"),
        ([*PROJECT, ""], "FIT.zarr must be a path, as text; got ''."),
        ([*PROJECT], "Missing argument 'FIT.zarr'"),
        ([*PROJECT, "fit.zarr", "--fail-above", "1"], "No such option '--fail-above'"),
        (["mmdpca-project", "video.npy", "fit.zarr"], "X has features of shape (8, 10, 3)"),
        (["mmdpca-project", "nan.npy", "fit.zarr"], "not finite in features that the fit knows"),
        (["mmdpca-distance", "nan.npy", "fit.zarr"], "row 3 (row 3 of block 0) is not finite"),
        (
            ["mmdpca-background", "video.npy", "--k", "31"],
            "k=31 components were asked for, of 30 r",
        ),
        (
            ["mmdpca-background", "video.npy", "--white", "0"],
            "--white must be greater than 0; got ",
        ),
    ],
)
def test_commands__refuse(bigkd, folder, fitted, arguments, message):
    done = bigkd(*arguments, *(["--progress", "none"] if len(arguments) > 2 else []))
    faults = ("does not exist", "not finite", "no bigkd store")
    assert done.exit_code == (4 if any(fault in message for fault in faults) else 2)
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.output
    usage = done.stderr.startswith("Usage: ")
    assert usage or (done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1)


def test_help__of_every_command(bigkd):
    for command in ("mmdpca", "mmdpca-background"):
        text = " ".join(bigkd(command, "--help").stdout.split())
        assert "moments:0,1 (a number for each order from 1 on; this is PCA)" in text
        assert "[default: gauss]" in text
    text = bigkd("--help").stdout
    for command in ("mmdpca", "mmdpca-project", "mmdpca-distance", "mmdpca-background"):
        assert re.search(rf"\n  {command} +\w", text)
    assert "--fail-if-explained-below" in text


def test_given_tempered__is_what_a_job_file_holds():
    assert given_tempered({"kernel": None}) == {}
    assert given_tempered({"kernel": "laplace"}) == {"kernel": "laplace"}
    assert given_tempered({"kernel": "laplace:2"}) == {
        "kernel": {"name": "laplace", "length_scale": 2.0}
    }
