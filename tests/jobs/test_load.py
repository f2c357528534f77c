"""Job files: what is read, and what is refused with the key and the line."""

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from bigkd import finc
from bigkd.errors import JobFileError
from bigkd.jobs import load_job
from bigkd.jobs.kernels import KernelField
from bigkd.jobs.rows import RowsPart
from bigkd.kernels import (
    CovarianceGaussian,
    Epanechnikov,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Polynomial,
    Triangle,
)

FULL_YAML = """\
version: 1
modes:
  test: new.zarr
  reference: {path: /data/old.parquet, columns: [embedding], block_rows: 4096, missing: skip}
  kernel: {name: gaussian, bandwidth: median, factor: 0.3}
  n_frequencies: 1000
  rho: 2
  n_modes: 5
  method: finc
  sampling: orthogonal
  frequency_tolerance: 1e-2
  n_top: 16
  top_share: 0.5
  alpha: 0.05
  n_draws: 99
  seed: 7
  nonfinite: drop
output:
  store: results/modes.zarr
  overwrite: false
  sheet: results/modes.html
  images: pictures.npy
  history: history.zarr
  report: report.html
  keep_summaries: false
run:
  scheduler: tcp://head:8786
  checkpoint: s3://bucket/scratch
  keep_checkpoints: true
  memory_limit: 2 GiB
  progress_log: progress.jsonl
  stall_seconds: 60
"""

FULL_TOML = """\
version = 1

[modes]
test = "new.zarr"
reference = { path = "/data/old.parquet", columns = ["embedding"], block_rows = 4096, missing = "skip" }
n_frequencies = 1000
rho = 2
n_modes = 5
method = "finc"
sampling = "orthogonal"
frequency_tolerance = 1e-2
n_top = 16
top_share = 0.5
alpha = 0.05
n_draws = 99
seed = 7
nonfinite = "drop"

[modes.kernel]
name = "gaussian"
bandwidth = "median"
factor = 0.3

[output]
store = "results/modes.zarr"
overwrite = false
sheet = "results/modes.html"
images = "pictures.npy"
history = "history.zarr"
report = "report.html"
keep_summaries = false

[run]
scheduler = "tcp://head:8786"
checkpoint = "s3://bucket/scratch"
keep_checkpoints = true
memory_limit = "2 GiB"
progress_log = "progress.jsonl"
stall_seconds = 60
"""  # noqa: E501

MINIMAL = "modes:\n  test: a.npy\n  reference: b.npy\n"


def test_load__reads_every_key_with_paths_from_the_file_s_folder(load, tmp_path):
    job = load(FULL_YAML)
    assert job.modes.test.path == str(tmp_path / "new.zarr")
    assert job.modes.reference == RowsPart(
        path="/data/old.parquet", columns=["embedding"], block_rows=4096, missing="skip"
    )
    assert job.modes.kernel.build() == finc.ScaledRule("median", 0.3)
    assert job.modes.frequency_tolerance == 0.01
    assert job.output.store == str(tmp_path / "results/modes.zarr")
    assert job.run.checkpoint == "s3://bucket/scratch"
    for part in (job.modes, job.output, job.run):
        assert part.model_fields_set == set(type(part).model_fields)


def test_load__gives_the_same_job_from_yaml_and_toml(load):
    assert load(FULL_TOML, ".toml") == load(FULL_YAML) == load(FULL_YAML, ".yml")


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("auto", "auto"),
        ("median", "median"),
        ("{name: gaussian, sigma: 2}", Gaussian(2.0)),
        ("{name: gaussian, bandwidth: auto}", "auto"),
        ("{name: laplace, length_scale: 1.5}", Laplace(1.5)),
        ("{name: matern, nu: 1.5, length_scale: 2}", Matern(1.5, 2.0)),
        (
            "{name: inverse_multiquadric, length_scale: 1, beta: 0.5}",
            InverseMultiquadric(1.0, 0.5),
        ),
        (
            "{name: matern, nu: 2.5, bandwidth: median, factor: 2}",
            finc.ScaledRule("median", 2.0, Matern(2.5, 1.0)),
        ),
        (
            "{name: covariance_gaussian, covariance: [[2, 0.5], [0.5, 1]]}",
            CovarianceGaussian(((2.0, 0.5), (0.5, 1.0))),
        ),
    ],
)
def test_load__kernels(load, text, kernel):
    assert load(f"{MINIMAL}  kernel: {text}\n").modes.kernel.build() == kernel


@pytest.mark.parametrize(
    ("given", "kernel"),
    [
        ({"name": "gaussian", "sigma": 2}, Gaussian(2.0)),
        ({"name": "triangle", "radius": 2}, Triangle(2.0)),
        ({"name": "epanechnikov", "radius": 0.5}, Epanechnikov(0.5)),
        (
            {"name": "triangle", "bandwidth": "median", "factor": 3},
            finc.ScaledRule("median", 3.0, Triangle(1.0)),
        ),
        ({"name": "polynomial", "coefficients": [0, 1]}, Polynomial((0.0, 1.0))),
        ("median", "median"),
    ],
)
def test_kernel_field__takes_every_kernel(given, kernel):
    assert TypeAdapter(KernelField).validate_python(given).build() == kernel


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "triangle"}, "must have either radius or bandwidth"),
        ({"name": "polynomial", "coefficients": []}, "must be a sequence of finite numbers"),
        ({"name": "polynomial", "coefficients": [1], "bandwidth": "auto"}, "not permitted"),
        ({"name": "box", "radius": 1}, "'triangle', 'epanechnikov', 'polynomial'"),
    ],
)
def test_kernel_field__refuses(given, message):
    with pytest.raises(ValidationError, match=message):
        TypeAdapter(KernelField).validate_python(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            MINIMAL + "  n_mods: 3\n",
            "line 4: modes.n_mods is not a key here. Did you mean n_modes?",
        ),
        (MINIMAL + "outputs: {}\n", "line 4: outputs is not a key here. Did you mean output?"),
        (MINIMAL + "  rho: two\n", "line 4: modes.rho must be a valid number; got 'two'."),
        (MINIMAL + '  seed: "3"\n', "line 4: modes.seed must be a valid integer; got '3'."),
        (MINIMAL + "  rho: -1\n", "line 4: modes.rho must be greater than or equal to 0; got -1."),
        (MINIMAL + "  rho: .inf\n", "line 4: modes.rho must be a finite number; got inf."),
        (MINIMAL + "  alpha: 1\n", "line 4: modes.alpha must be less than 1; got 1."),
        (MINIMAL + "  method: pca\n", "line 4: modes.method must be 'finc' or 'ken'; got 'pca'."),
        (MINIMAL + "  n_frequencies: 0\n", "modes.n_frequencies must be 'auto' or a whole number"),
        (MINIMAL + "  kernel: gauss\n", "line 4: modes.kernel must be 'auto', 'median', or a map"),
        (MINIMAL + "  kernel: {name: gaussia}\n", "'gaussia', which must be one of 'gaussian'"),
        (MINIMAL + "  kernel: {name: gaussia}\n", "Did you mean gaussian?"),
        (MINIMAL + "  kernel: {sigma: 1}\n", "line 4: modes.kernel must have a name: gaussian"),
        (
            MINIMAL + "  kernel:\n    name: gaussian\n    sigma: 0\n",
            "line 6: modes.kernel.sigma must be greater than 0; got 0.",
        ),
        (
            MINIMAL + "  kernel:\n    name: laplace\n    sigma: 1\n",
            "line 6: modes.kernel.sigma is not a key here. Known keys: name, bandwidth, factor, l",
        ),
        (
            MINIMAL + "  kernel: {name: gaussian}\n",
            "line 4: modes.kernel must have either sigma or bandwidth",
        ),
        (
            MINIMAL + "  kernel: {name: gaussian, sigma: 1, factor: 2}\n",
            "line 4: modes.kernel has a factor, which goes with bandwidth",
        ),
        (
            MINIMAL + "  kernel: {name: matern, nu: 200, length_scale: 1}\n",
            "line 4: modes.kernel Matern.nu must be at most 100",
        ),
        (
            MINIMAL + "  kernel:\n    name: triangle\n    radius: 1\n",
            "line 4: modes.kernel has the name 'triangle', which must be one of 'gaussian', ",
        ),
        (
            MINIMAL + "  kernel: {name: polynomial, coefficients: [0, 1]}\n",
            "line 4: modes.kernel has the name 'polynomial', which must be one of 'gaussian', ",
        ),
        (
            MINIMAL
            + "  kernel:\n    name: covariance_gaussian\n    covariance: [[1, 2], [2, 1]]\n",
            "line 4: modes.kernel CovarianceGaussian.covariance must be positive definite",
        ),
        (
            MINIMAL + "  kernel:\n    name: covariance_gaussian\n    covariance: [[1, a]]\n",
            "line 6: modes.kernel.covariance[0][1] must be a valid number; got 'a'.",
        ),
        (
            "modes:\n  reference: b.npy\n",
            "line 1: modes.test is missing: the collection whose modes are wanted.",
        ),
        (
            "output: {}\n",
            "line 1: expected comparisons, or one of modes, distance, two_sample, dis",
        ),
        ("modes: 3\n", "line 1: modes must be a mapping of keys to values; got 3."),
        ("", "line 1: expected a mapping with a key such as 'modes:'; got an empty file."),
        ("- a\n", "line 1: expected a mapping with a key such as 'modes:'; got ['a']."),
        ("modes:\n  test: 5\n  reference: b\n", "line 2: modes.test must be a path, or a mapping"),
        ("modes:\n  test: {path: ''}\n  reference: b\n", "line 2: modes.test.path must be a path"),
        (
            "modes:\n  test:\n    path: a\n    column: [x]\n  reference: b\n",
            "line 4: modes.test.column is not a key here. Did you mean columns?",
        ),
        (
            "modes:\n  test: {path: a, columns:\n    [x,\n     3]}\n  reference: b\n",
            "line 4: modes.test.columns[1] must be a valid string; got 3.",
        ),
        (MINIMAL + "run:\n  scheduler: slurm\n", "line 5: run.scheduler must be 'sync'"),
        (MINIMAL + "run:\n  memory_limit: much\n", "line 5: run.memory_limit must be a positive"),
        (
            MINIMAL + "output:\n  sheet: a.pdf\n",
            "line 5: output.sheet must end in .html or .png",
        ),
        (
            MINIMAL + "output:\n  images: a.npy\n",
            "line 5: output.images is for a sheet; name the",
        ),
        (MINIMAL + "  n_top: 0\noutput: {sheet: a.png}\n", "modes.n_top must be at least 1"),
        (MINIMAL + "version: 2\n", "line 4: version must be 1; got 2."),
        (MINIMAL + "  rho: 1\n  rho: 2\n", "line 5, column 3: the key rho stands twice; its first"),
        (MINIMAL + "  rho: [1\n", "line 5, column 1: expected ',' or ']'"),
        (MINIMAL + "  rho: !!python/object/apply:os.getcwd []\n", "line 4, column 8: the tag"),
        (MINIMAL + "  rho: !!python/name:os.system\n", "holds plain values, never code"),
        (MINIMAL + "  rho: !custom 3\n", "line 4, column 8: the tag '!custom' is refused"),
        ("modes: &all\n  test: *all\n", "line 2, column 9: aliases (*name) have no place"),
        ("modes:\n  <<: {test: a}\n", "line 2, column 3: expected the name of a key; got '<<'"),
        ("3: x\n", "line 1, column 1: expected the name of a key; got '3'"),
        (MINIMAL + "---\n" + MINIMAL, "line 4, column 1: but found another document"),
        ("[" * 5000, "nested too deeply"),
        ('modes: {test: "a\\0b", reference: b}\n', "modes.test must be a path without NUL"),
    ],
)
def test_load__refuses_yaml(load, text, message):
    with pytest.raises(JobFileError) as caught:
        load(text)
    assert message in str(caught.value)
    assert "job.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[modes]\ntest = 'a'\nreference = 'b'\nn_mods = 3\n", "line 4: modes.n_mods is not a key"),
        ("modes.test = 'a'\nmodes.reference = 'b'\nmodes.rho = 'x'\n", "line 3: modes.rho must be"),
        ("[modes]\ntest = 'a'\n", "line 1: modes.reference is missing"),
        (
            "[modes]\ntest='a'\nreference='b'\nkernel = {name = 'gaussian', sigma = -1}\n",
            "line 4: modes.kernel.sigma must be greater than 0; got -1.",
        ),
        (
            "[modes]\ntest='a'\nreference='b'\n[modes.kernel]\nname='gaussian'\nsigma=-1\n",
            "line 6: modes.kernel.sigma must be greater than 0; got -1.",
        ),
        ("[modes]\ntest = 'a'\ntest = 'b'\n", "line 3, column 11: Cannot overwrite a value."),
        ("[modes]\ntest = \n", "line 2, column 8: Invalid value."),
    ],
)
def test_load__refuses_toml(load, text, message):
    with pytest.raises(JobFileError, match=re.escape(message)):
        load(text, ".toml")


def test_load__names_every_mistake_at_once_in_the_order_of_lines(load):
    with pytest.raises(JobFileError) as caught:
        load("modes:\n  tests: a\n  rho: -1\n  reference: b\nruns: {}\n")
    lines = re.findall(r"line (\d)", str(caught.value))
    assert lines == ["1", "2", "3", "5"]


def test_load__knows_homes_and_times(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/homes/me")
    (tmp_path / "job.yaml").write_text(
        "data: {a: ~/a.npy, b: '~backup.npy'}\n"
        "modes: {test: a, reference: b}\noutput: {store: ~/out}\n"
        "cluster: {kind: slurm, cores: 1, memory: 1 GB, walltime: 10:30:00}\n"
    )
    job = load_job(tmp_path / "job.yaml")
    assert job.modes.reference.path == str(tmp_path / "~backup.npy")
    job = load_job(tmp_path / "job.yaml", data={"b": "~/b.npy"})
    assert job.modes.test.path == "/homes/me/a.npy"
    assert job.modes.reference.path == "/homes/me/b.npy"
    assert job.output.store == "/homes/me/out"
    assert job.cluster.walltime == "10:30:00"


def test_load__refuses_what_is_no_job_file(tmp_path):
    with pytest.raises(JobFileError, match="does not exist"):
        load_job(tmp_path / "nowhere.yaml")
    with pytest.raises(JobFileError, match="a job file ends in"):
        load_job(tmp_path / "job.json")
    (tmp_path / "binary.yaml").write_bytes(b"modes:\n\xff\xfe\x00")
    with pytest.raises(JobFileError, match="line 2: not text in UTF-8"):
        load_job(tmp_path / "binary.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(JobFileError, match="cannot be read"):
        load_job(tmp_path / "folder.yaml")
