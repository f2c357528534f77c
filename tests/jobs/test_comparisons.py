"""What a job can make: keys, defaults, and what is refused with the key and the line."""

import inspect

import pytest
from pydantic import BaseModel

from bigkd import coreset, distance, finc, shapes
from bigkd.engine import Options, Settings
from bigkd.errors import JobFileError
from bigkd.io import open_rows
from bigkd.jobs import Job
from bigkd.jobs.comparisons import (
    COMPARISONS,
    CoresetPart,
    DistanceMatrixPart,
    DistancePart,
    ModesPart,
    TwoSamplePart,
)
from bigkd.jobs.comparisons.two_sample import PermutationPart
from bigkd.jobs.rows import CollectionPart
from bigkd.jobs.schema import RunPart
from bigkd.kernels import Polynomial, Triangle

PAIR = "  x: a.npy\n  y: b.npy\n"
DISTANCE = f"distance:\n{PAIR}"
MANY = "distance_matrix:\n  collections: {a: a.npy, b: b.npy}\n"
CORESET = "coreset:\n  data: a.npy\n  size: 5\n"

FUNCTIONS = [
    (finc.modes, ModesPart, {"test", "reference"}, {"features"}),
    (distance.kernel_distance, DistancePart, {"x", "y", "test"}, {"costs"}),
    (distance.two_sample_test, TwoSamplePart, {"x", "y"}, set()),
    (distance.matrix, DistanceMatrixPart, {"collections"}, set()),
    (coreset.thin, CoresetPart, {"data", "method", "replacement"}, set()),
    (
        coreset.sample,
        CoresetPart,
        {"data", "method", "kernel", "selection", "reweight", "measure", "n_frequencies"},
        set(),
    ),
]
"""Function, part, keys that are no keywords of the function, keywords that are no keys."""


@pytest.mark.parametrize(("function", "part", "own", "left_out"), FUNCTIONS)
def test_parts__have_the_keywords_and_defaults_of_their_function(function, part, own, left_out):
    wanted = dict(inspect.signature(function).parameters)
    del wanted["options"]
    of_rows = {name for name in wanted if name.endswith(("weights", "vectors"))}
    of_rows |= {"x", "y", "test", "reference", "data", "collections"} & set(wanted)
    fields = {name: field for name, field in part.model_fields.items() if name not in own}
    assert set(wanted) - of_rows - left_out == set(fields) - {"nonfinite"}
    for name in set(fields) - {"nonfinite", "kernel"}:
        default = wanted[name].default
        if default is inspect.Parameter.empty:
            assert fields[name].is_required()
        else:
            assert fields[name].default == default, name
    if "kernel" in fields and wanted["kernel"].default is not inspect.Parameter.empty:
        assert fields["kernel"].default.build() == wanted["kernel"].default


def test_parts__test_of_a_distance_has_the_defaults_of_the_test():
    wanted = inspect.signature(distance.two_sample_test).parameters
    for name, field in PermutationPart.model_fields.items():
        assert field.default == wanted[name].default, name


def test_options__have_the_defaults_of_the_functions():
    reading = inspect.signature(open_rows).parameters
    running = inspect.signature(Settings).parameters
    taken = set()
    for part in (CollectionPart, RunPart, *COMPARISONS.values()):
        for name in set(part.model_fields) & set(Options.__annotations__):
            wanted = reading.get(name) or running[name]
            assert part.model_fields[name].default == wanted.default, name
            taken.add(name)
    assert set(Options.__annotations__) - taken == {"progress"}


def test_shapes__have_the_defaults_of_the_function():
    wanted = inspect.signature(shapes.read_mesh).parameters
    assert CollectionPart.model_fields["shape"].default == wanted["orientation"].default
    assert CollectionPart.model_fields["degenerate"].default == wanted["degenerate"].default


def test_comparisons__are_the_keys_of_a_job_and_their_kinds_differ():
    about = {"version", "data", "comparisons", "fail_if", "output", "cluster", "run"}
    keys = set(Job.model_fields) - about
    assert set(COMPARISONS) == keys
    assert len({part.kind for part in COMPARISONS.values()}) == len(keys)


def test_load__reads_every_key_of_a_distance(load, tmp_path):
    job = load(
        "distance:\n"
        "  x: {path: a.npy, weights: w.npy, vectors: u.npy, block_rows: 10}\n"
        "  y: {path: b.parquet, columns: [e], weights: /w.npy, vectors: v.npy, missing: skip}\n"
        "  kernel: {name: triangle, radius: 2}\n"
        "  normalize: false\n  method: exact\n  eps: 1e-3\n  delta: 0.05\n  n_frequencies: 100\n"
        "  sizing: value\n  coreset_size: 50\n  seed: 3\n  nonfinite: drop\n  test: false\n"
    )
    part = job.comparison
    assert part is job.distance
    assert part.model_fields_set == set(DistancePart.model_fields)
    assert part.x.weights == str(tmp_path / "w.npy")
    assert part.y.weights == "/w.npy"
    assert part.x.has_vectors
    assert part.kernel.build() == Triangle(2.0)
    assert part.test is None


@pytest.mark.parametrize(
    ("text", "n_permutations"), [("true", 999), ("{n_permutations: 99, method: exact}", 99)]
)
def test_load__test_of_a_distance(load, text, n_permutations):
    part = load(f"{DISTANCE}  test: {text}\n").distance
    assert part.test.n_permutations == n_permutations
    assert part.judged == {"distance", "rejected"}
    assert load(DISTANCE).distance.judged == {"distance"}


def test_load__the_other_keys(load):
    many = load(f"{MANY}  kernel: {{name: polynomial, coefficients: [0, 1]}}\n").comparison
    assert list(many.collections) == ["a", "b"]
    assert many.kernel.build() == Polynomial((0.0, 1.0))
    assert load(f"two_sample:\n{PAIR}").comparison.kernel.build() == "median"
    assert load(f"{CORESET}  method: sample\n  replacement: true\n").comparison.replacement
    toml = "[coreset]\nsize = 5\ndata = {path = 'a.npy', weights = 'w.npy'}\n"
    assert load(toml, ".toml").coreset.data.weights.endswith("w.npy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DISTANCE + CORESET, "line 4: coreset stands beside distance; a job makes one thing, so"),
        ("distance:\n", "line 1: distance must be a mapping of keys to values; got nothing."),
        ("distance: 3\n", "line 1: distance must be a mapping of keys to values; got 3."),
        ("distances: {}\n", "line 1: distances is not a key here. Did you mean distance?"),
        ("distance:\n  x: a\n", "line 1: distance.y is missing: the collection to compare it with"),
        (DISTANCE + "  methods: rff\n", "line 4: distance.methods is not a key here."),
        (DISTANCE + "  method: fft\n", "line 4: distance.method must be 'auto', 'exact', 'rff', "),
        (DISTANCE + "  sizing: big\n", "line 4: distance.sizing must be 'pilot', 'value'"),
        (DISTANCE + "  eps: 0\n", "line 4: distance.eps must be greater than 0; got 0."),
        (DISTANCE + "  delta: 1\n", "line 4: distance.delta must be less than 1; got 1."),
        (DISTANCE + "  normalize: 1\n", "line 4: distance.normalize must be a valid boolean; got"),
        (DISTANCE + "  n_frequencies: 1\n", "line 4: distance.n_frequencies must be greater than "),
        (DISTANCE + "  coreset_size: 0\n", "line 4: distance.coreset_size must be greater than or"),
        (DISTANCE + "  test: 3\n", "line 4: distance.test must be a mapping of keys to values; g"),
        (
            DISTANCE + "  test:\n    n_permutation: 9\n",
            "line 5: distance.test.n_permutation is not a key here. Did you mean n_permutations?",
        ),
        (DISTANCE + "  test: {alpha: 0}\n", "line 4: distance.test.alpha must be greater than 0"),
        (DISTANCE + "  kernel: auto\n", "line 4: distance.kernel has the rule 'auto', which finds"),
        (DISTANCE + "  kernel: wide\n", "line 4: distance.kernel must be 'auto', 'median', or a m"),
        (DISTANCE + "  kernel: {radius: 1}\n", "must have a name: gaussian, laplace, matern, inv"),
        (
            DISTANCE + "  kernel:\n    name: triangl\n",
            "line 4: distance.kernel has the name 'triangl', which must be one of 'gaussian',",
        ),
        (
            DISTANCE + "  kernel:\n    name: polynomial\n    sigma: 1\n",
            "line 6: distance.kernel.sigma is not a key here. Known keys: name, coefficients.",
        ),
        (
            "distance:\n  x:\n    path: a.npy\n    weight: w.npy\n  y: b.npy\n",
            "line 4: distance.x.weight is not a key here. Did you mean weights?",
        ),
        (
            "distance:\n  x: {path: a.npy, weights: 3}\n  y: b.npy\n",
            "line 2: distance.x.weights must be a path, as text; got 3.",
        ),
        (
            "distance:\n  x: a.off\n  y: {path: b.off, columns: [x]}\n",
            "line 3: distance.y is a mesh file, which is read whole and has weights and vectors",
        ),
        (
            "distance:\n  x: {path: a.npy, shape: varifold}\n  y: b.npy\n",
            "line 2: distance.x has shape, which is for mesh files (.off, .obj, .ply, .stl)",
        ),
        (
            "distance:\n  x: {path: a.stl, shape: flat}\n  y: b.stl\n",
            "line 2: distance.x.shape must be 'current' or 'varifold'; got 'flat'.",
        ),
        (
            "distance:\n  x: a.OFF\n  y: b.OFF\n  test: true\n",
            "line 1: distance has a test, which exchanges rows of the two collections",
        ),
        (
            f"two_sample:\n{PAIR}  n_groups: 8\n",
            "line 4: two_sample.n_groups must be greater than or equal to 64; got 8.",
        ),
        (
            "two_sample:\n  x: {path: a.npy, vectors: u.npy}\n  y: b.npy\n",
            "line 2: two_sample.x.vectors is not a key here. Known keys: path, columns, block_rows",
        ),
        (
            "distance_matrix:\n  collections: {a: a.npy}\n",
            "line 2: distance_matrix.collections must be two or more collections by name; got 1.",
        ),
        (
            "distance_matrix:\n  collections:\n    a: a.npy\n    b: {path: b, column: [x]}\n",
            "line 4: distance_matrix.collections.b.column is not a key here. Did you mean columns?",
        ),
        (MANY + "  method: coreset\n", "line 3: distance_matrix.method must be 'auto', 'exact'"),
        ("coreset:\n  data: a.npy\n", "line 1: coreset.size is missing: rows to choose."),
        (CORESET + "  size: 5\n", "line 4, column 3: the key size stands twice"),
        (CORESET + "  reweight: best\n", "line 4: coreset.reweight must be 'nonnegative', 'mass'"),
        (
            CORESET + "  method: sample\n  kernel: median\n  measure: none\n",
            "line 1: coreset has kernel, measure, which goes with method 'thin'; the method is 'sa",
        ),
        (
            CORESET + "  replacement: true\n",
            "line 1: coreset has replacement, which goes with method 'sample'; the method is 'thin",
        ),
        (CORESET + "output: {sheet: a.png}\n", "output.sheet is a picture of modes, of did, of m"),
    ],
)
def test_load__refuses(load, text, message):
    with pytest.raises(JobFileError) as caught:
        load(text)
    assert message in str(caught.value)


def test_parts__describe_every_key():
    def described(model):
        for name, field in model.model_fields.items():
            assert field.description or name == "name", (model, name)

    for part in (CollectionPart, PermutationPart, RunPart, *COMPARISONS.values()):
        assert issubclass(part, BaseModel)
        described(part)
