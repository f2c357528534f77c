"""Dissimilarities up to deformation on the command line."""

import json
import re

import numpy as np
import pytest
import xarray as xr

from bigkd import did
from bigkd.cli import did_commands
from bigkd.cli.did_options import given_kernels
from bigkd.did.dissimilarity import match
from bigkd.engine import tiles
from bigkd.io import load_dataset, open_tiled, read_images
from bigkd.jobs.comparisons import DidMatrixPart, DidNearestPart, DidPart
from bigkd.jobs.data import DataPart, DatumPart
from bigkd.jobs.schema import RunPart
from bigkd.kernels import Gaussian, Matern

FEW = ("--x-landmarks", "6", "--y-landmarks", "4")
COARSE = {"x_landmarks": 6, "y_landmarks": 4}
SERIES = ("--dims", "time,variable", "--x-landmarks", "6", "--y-landmarks", "grid:8")
PAIR = ("did", "photos/p0.png", "photos/p1.png", *FEW)
MATRIX = ("did-matrix", "photos", *FEW, "--scheduler", "sync")
NEAREST = ("did-nearest", "photos/p1.png", "photos", *FEW, "--scheduler", "sync")


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Working folder with pictures and series."""
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for at in range(4):
        small = image.fromarray(generator.integers(0, 256, (4, 5, 3)).astype(np.uint8))
        small.resize((20, 16)).save(tmp_path / "photos" / f"p{at}.png")
    image.fromarray(np.full((8, 10, 3), 90, np.uint8)).save(tmp_path / "small.png")
    np.save("series.npy", generator.normal(size=(9, 30, 2)).cumsum(axis=1))
    np.save("mask.npy", generator.random((16, 20)))
    return tmp_path


def photo(name):
    return read_images(f"photos/{name}.png").values[0]


@pytest.mark.parametrize(
    ("command", "part", "collections", "passes"),
    [
        (did_commands.did, DidPart, {"image_size", "missing"}, False),
        (did_commands.did_matrix, DidMatrixPart, set(DataPart.model_fields) - {"path"}, True),
        (did_commands.did_nearest, DidNearestPart, set(DataPart.model_fields) - {"path"}, True),
    ],
)
def test_commands__have_an_option_for_every_key(command, part, collections, passes):
    options = {parameter.name for parameter in command.params}
    assert set(part.model_fields) | collections <= options
    assert not passes or set(RunPart.model_fields) - {"progress_log"} <= options
    assert "nonfinite" not in options
    roles = {name for name, field in part.model_fields.items() if field.annotation is DatumPart}
    assert {f"{role}_row" for role in roles} <= options


def test_did__prints_every_lambda_and_every_choice(bigkd, pictures):
    done = bigkd(*PAIR, "--lam", "1e-4,0.01", "--scale", "unit", "--out", "result.zarr")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "Dissimilarity of p1.png from smooth deformations of p0.png\n"
        "grid y 16, x 20, channel 3; x: gaussian kernel (sigma 0.1667), grid of 6 x 6; y: laplace "
        "kernel (length_scale 0.2), grid of 4 x 4 x 4\n"
        "mask blackman, weights none, normalize imagenet, float32, scale unit\n"
    )
    assert re.search(r"\n0\.0001 +0\.\d+ +\de-\d+\n +0\.01 +0\.\d+ ", done.stdout)
    assert re.search(r"\nnorms of the maps: \S+ \(reference\), \S+ \(searched\)\n$", done.stdout)
    assert done.stderr == "Wrote the result to result.zarr.\n"
    assert bigkd("show", "result.zarr").stdout == done.stdout
    shown = json.loads(bigkd("show", "result.zarr", "--json").stdout)
    direct = did.dissimilarity(photo("p0"), photo("p1"), lam=[1e-4, 1e-2], scale="unit", **COARSE)
    assert shown["lam"] == [1e-4, 0.01]
    np.testing.assert_allclose(shown["dissimilarity"], direct["dissimilarity"], rtol=1e-12)
    promised = bigkd(*PAIR, "--promise").stdout
    assert "lower" in promised
    assert "lost to the landmarks, at most: " in promised


def test_did__is_what_the_function_returns(bigkd, pictures):
    done = bigkd(
        "did", "series.npy", "series.npy", "--f-row", 2, "--g-row", 5, *SERIES, "--lam", "rate",
        "--relative", "--mask", "none", "--x-kernel", "matern:1.5:0.3",
        "--y-kernel", "gaussian:0.4", "--normalize", "none", "--jitter", 1e-9,
        "--dtype", "float32", "--seed", 3, "--nan", "zero_weight", "--json", "--out", "result.zarr",
    )  # fmt: skip
    series = np.load("series.npy")
    direct = did.dissimilarity(
        series[2], series[5], dims=("time", "variable"), x_landmarks=6, y_landmarks=8, lam="rate",
        relative=True, mask=None, x_kernel=Matern(1.5, 0.3), y_kernel=Gaussian(0.4), normalize=None,
        jitter=1e-9, dtype="float32", seed=3, nan="zero_weight",
    )  # fmt: skip
    assert json.loads(done.stdout)["dissimilarity"] == direct["dissimilarity"].values.tolist()
    stored = load_dataset("result.zarr", kind="dissimilarity")
    assert stored.attrs.pop("f") == "series.npy[2]"
    del stored.attrs["g"]
    xr.testing.assert_identical(stored, direct)


@pytest.mark.parametrize("suffix", ["png", "html"])
def test_did__draws_what_matches(bigkd, pictures, suffix):
    done = bigkd(*PAIR, "--match", f"new/match.{suffix}", "--mask", "mask.npy")
    assert "Wrote the picture to new/match." in done.stderr
    mask = np.load("mask.npy")
    match(photo("p0"), photo("p1"), mask=mask, path=f"direct.{suffix}", **COARSE)
    drawn, direct = (pictures / f"{name}.{suffix}" for name in ("new/match", "direct"))
    assert drawn.read_bytes() == direct.read_bytes()
    assert bigkd(*PAIR, "--match", f"new/match.{suffix}").exit_code == 2
    assert bigkd(*PAIR, "--match", f"new/match.{suffix}", "--overwrite").exit_code == 0


def test_did__fails_above_a_threshold(bigkd, pictures):
    assert bigkd(*PAIR, "--fail-above", "1e-9", "--quiet").exit_code == 3
    assert bigkd(*PAIR, "--fail-above", "1", "--quiet").output == ""


def test_did_matrix__prints_and_judges_pairs(bigkd, pictures):
    done = bigkd(*MATRIX, "--lam", "1e-3,1e-2", "--out", "result.zarr")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "Dissimilarities of 4 data from smooth deformations of 4 references\ngrid y 16, x 20, chann"
    )
    assert "\nlam 0.001: references down, searched across\n" in done.stdout
    assert re.search(r"\n +p0.png +p1.png +p2.png +p3.png\n─+\np0.png +\S+e-", done.stdout)
    assert bigkd("show", "result.zarr").stdout == done.stdout
    shown = json.loads(bigkd("show", "result.zarr", "--json").stdout)
    stored = open_tiled("result.zarr", kind="dissimilarities").load()
    assert shown["dissimilarity"] == stored["dissimilarity"].values.tolist()
    assert shown["searched"] == ["p0.png", "p1.png", "p2.png", "p3.png"]
    assert shown["shape"] == {"lam": 2, "reference": 4, "searched": 4}
    direct = did.matrix("photos", lam=[1e-3, 1e-2], scheduler="sync", **COARSE)
    xr.testing.assert_identical(stored, direct)

    assert bigkd(*MATRIX, "--out", "result.zarr").exit_code == 2
    again = (*MATRIX, "--out", "result.zarr", "--overwrite", "--quiet")
    assert bigkd(*again, "--fail-above", "1").exit_code == 0
    largest = float(open_tiled("result.zarr", kind="dissimilarities")["dissimilarity"].max())
    assert bigkd(*again, "--fail-above", largest * 0.999).exit_code == 3
    assert bigkd(*MATRIX, "--fail-above", largest * 1.001).exit_code == 0


def test_did_matrix__of_many_prints_the_first(bigkd, pictures):
    done = bigkd("did-matrix", "series.npy", "series.npy", *SERIES, "--block-rows", "4")
    assert done.stdout.endswith("and the others of 9 x 9\n")
    assert "mapping collection: 9 of 9 rows" in done.stderr
    assert len(done.stdout.splitlines()) == 4 + 3 + 8 + 1


def test_did_matrix__interrupted_says_how_to_go_on(bigkd, pictures, monkeypatch):
    monkeypatch.setattr(tiles, "TILE_WORK", 1)
    make = ("did-matrix", "series.npy", *SERIES, "--scheduler", "sync")
    assert bigkd(*make, "--out", "whole.zarr").exit_code == 0
    original, left = tiles.fill, iter(range(40))
    monkeypatch.setattr(
        tiles, "fill", lambda *given: original(*given) if next(left) < 39 else stop()
    )
    stopped = bigkd(*make, "--out", "result.zarr")
    assert stopped.exit_code == 130
    assert (
        "39 finished segments are kept in result.zarr.checkpoint and beside result.zarr. Run "
        in (stopped.stderr)
    )
    monkeypatch.setattr(tiles, "fill", original)
    resumed = bigkd(*make, "--out", "result.zarr", "--resume")
    assert resumed.exit_code == 0
    assert "Resumed: 39 finished segments were there." in resumed.stderr
    both = [
        open_tiled(name, kind="dissimilarities").load() for name in ("whole.zarr", "result.zarr")
    ]
    xr.testing.assert_identical(*both)
    found = {path.name for path in pictures.iterdir()}
    assert found == {"photos", "small.png", "series.npy", "mask.npy", "whole.zarr", "result.zarr"}


def stop():
    raise KeyboardInterrupt


def test_did_nearest__prints_names_of_pictures(bigkd, pictures):
    done = bigkd(*NEAREST, "--k", 2, "--out", "result.zarr")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "Nearest to smooth deformations of p1.png among 4 data of photos\n"
    )
    assert re.search(r"\np1.png +0 +1 +\S+e-\d+ +p1.png *\np1.png +1 +\d ", done.stdout)
    assert bigkd("show", "result.zarr").stdout == done.stdout
    shown = json.loads(bigkd("show", "result.zarr", "--json").stdout)
    assert shown["query"] == ["p1.png"]
    assert shown["name"][0][0] == "p1.png"
    assert shown["index"][0][0] == 1


def test_did_nearest__of_a_series(bigkd, pictures):
    done = bigkd(
        "did-nearest", "series.npy", "series.npy", "--query-row", 3, *SERIES, "--k", 4, "--json"
    )
    series = np.load("series.npy")
    how = {"dims": ("time", "variable"), "x_landmarks": 6, "y_landmarks": 8}
    direct = did.nearest(series[3], series, 4, scheduler="sync", **how)
    record = json.loads(done.stdout)
    assert record["index"] == direct["index"].values.tolist()
    assert "name" not in record
    assert (record["attrs"]["query"], record["attrs"]["n_data"]) == ("series.npy[3]", 9)


def test_pictures__of_another_size_are_resampled_on_request(bigkd, pictures):
    pair = ("did", "small.png", "photos/p0.png", *FEW)
    refused = bigkd(*pair)
    assert refused.exit_code == 2
    assert "f has a grid of 8 x 10 and g one of 16 x 20" in refused.stderr
    assert "--image-size HEIGHT,WIDTH" in refused.stderr
    done = bigkd(*pair, "--image-size", "12,15", "--json")
    assert json.loads(done.stdout)["attrs"]["grid"] == "y 12, x 15, channel 3"
    (pictures / "small.png").rename(pictures / "photos" / "small.png")
    for command in (MATRIX, ("modes", "photos", "photos", "--n-frequencies", "20"), NEAREST):
        refused = bigkd(*command)
        assert refused.exit_code == 2
        assert "on the command line, --image-size 16,20" in refused.stderr
    assert bigkd(*MATRIX, "--image-size", "16,20").exit_code == 0


def test_run__carries_out_jobs(bigkd, pictures):
    (pictures / "job.yaml").write_text(
        "did_matrix:\n  collection: photos\n  x_landmarks: 6\n  y_landmarks: 4\n"
        "output: {store: night.zarr}\n"
    )
    once = bigkd("run", "job.yaml", "--scheduler", "sync")
    assert once.exit_code == 0
    assert bigkd("show", "night.zarr").stdout == once.stdout
    assert bigkd("run", "job.yaml", "--fail-above", "1e-9", "--quiet", "--resume").exit_code == 3
    (pictures / "job.yaml").write_text("did_nearest: {query: small.png, collection: photos}\n")
    refused = bigkd("run", "job.yaml", "--fail-above", "1")
    assert refused.exit_code == 2
    assert (
        "--fail-above is for jobs that make distances: distance, distance_matrix, did or did_m"
        in (refused.stderr)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*PAIR, "--lam", "0"], "--lam must be a positive number, a list of them, or 'rate'"),
        (
            [*PAIR, "--lam", "1,x"],
            "--lam must be a positive number, a list of them, or 'rate' for ",
        ),
        (
            [*PAIR, "--lam", "1,2", "--match", "a.png"],
            "--lam must be one number for a picture of what matches",
        ),
        ([*PAIR, "--match", "a.pdf"], "the picture's file must end in .html or .png"),
        ([*PAIR, "--x-kernel", "median"], "--x-kernel must be gaussian, laplace, matern"),
        (
            [*PAIR, "--x-kernel", "gaussian:median"],
            "--x-kernel gaussian:median: sigma must be a num",
        ),
        (
            [*PAIR, "--y-kernel", "gaussian"],
            "--y-kernel gaussian needs gaussian:SIGMA; got 'gaussi",
        ),
        ([*PAIR, "--y-kernel", "gaussian:0"], "--y-kernel must be greater than 0; got 0.0."),
        (
            [*PAIR, "--y-kernel", "epanechnikov:1"],
            "y_kernel=Epanechnikov(radius=1.0) is not positi",
        ),
        (
            [*PAIR, "--mask", "hann"],
            "--mask must be blackman, none, or the path of a .npy file; got",
        ),
        ([*PAIR, "--mask", "series.npy"], "mask must have one weight for each position"),
        ([*PAIR, "--mask", "no.npy"], "mask: no.npy does not exist"),
        ([*PAIR, "--weights", "coslat"], "'coslat' for data with a coordinate called lat"),
        ([*PAIR, "--x-landmarks", "grid"], "--x-landmarks must be a number of grid points along"),
        ([*PAIR, "--x-landmarks", "series.npy"], "x_landmarks as an array must have shape"),
        ([*PAIR, "--dims", "y,x"], "dims must name each of the 3 axes of a datum once"),
        ([*PAIR, "--image-size", "12"], "--image-size must be a height and a width, each a whole"),
        ([*PAIR, "--image-size", "wide"], "'wide' is not HEIGHT,WIDTH, such as 96,128"),
        ([*PAIR, "--g-row", "1"], "g: photos/p1.png has no row 1; it has 1, from 0."),
        ([*PAIR, "--g-row", "-1"], "--g-row must be greater than or equal to 0; got -1."),
        ([*PAIR, "--nonfinite", "drop"], "No such option '--nonfinite'"),
        ([*PAIR, "--scheduler", "sync"], "No such option '--scheduler'"),
        (
            ["did", "photos", "small.png"],
            "f: photos holds 4 data; expected one. Give the number of",
        ),
        (
            ["did", "series.npy", "series.npy", "--f-row", "1"],
            "f has data of shape (30, 2); pass d",
        ),
        (["did", "", "small.png"], "F must be a path, as text; got ''"),
        (["did", "small.png"], "Missing argument 'G'"),
        (["did", "no.png", "small.png"], "f: no.png does not exist"),
        ([*MATRIX, "--resume"], "nothing to resume from: name the store with --out"),
        ([*MATRIX, "--missing", "no"], "Invalid value for '--missing'"),
        ([*MATRIX, "--out", "small.png"], "exists already; pass --overwrite"),
        (
            [*MATRIX, "--out", "photos", "--overwrite"],
            "would be written over or into did_m",
        ),
        ([*MATRIX, "--fail-above", "nan"], "--fail-above must be finite and not negative"),
        ([*MATRIX, "--sheet", "a.png"], "No such option '--sheet'"),
        (["did-matrix", "photos", "small.png"], "they are compared on one grid"),
        (["did-matrix", "nowhere"], "collection: nowhere does not exist"),
        ([*NEAREST, "--k", "0"], "--k must be greater than or equal to 1; got 0."),
        ([*NEAREST, "--lam", "1,2"], "--lam must be one positive number, or 'rate' for N^(-1/4)"),
        ([*NEAREST, "--query-row", "1"], "query: photos/p1.png has no row 1"),
    ],
)
def test_commands__refuse(bigkd, pictures, arguments, message):
    done = bigkd(*arguments)
    assert done.exit_code == (4 if "does not exist" in message else 2)
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.output
    assert done.stderr.strip().count("\n\n") <= 1


def test_help__of_every_command(bigkd):
    for command in ("did", "did-matrix", "did-nearest"):
        text = " ".join(bigkd(command, "--help").stdout.split())
        assert "matern:1.5:0.3 (nu, length)" in text
        assert "[default: gaussian:1/6]" in text
    assert "did-nearest" in bigkd("--help").stdout


def test_given_kernels__are_what_a_job_file_holds():
    found = given_kernels({"x_kernel": "matern:1.5:0.3", "y_kernel": None})
    assert found == {"x_kernel": {"name": "matern", "nu": 1.5, "length_scale": 0.3}}
