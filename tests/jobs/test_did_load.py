"""Jobs that compare up to deformation: keys, defaults, and what is refused."""

import inspect

import pytest

from bigkd import did
from bigkd.did.choice import Choice
from bigkd.errors import JobFileError
from bigkd.jobs.comparisons import DidMatrixPart, DidNearestPart, DidPart
from bigkd.jobs.comparisons.representation import RepresentationPart, StrengthPart
from bigkd.kernels import Matern


def test_parts__have_the_options_and_defaults_of_a_representation():
    default = Choice()
    part = RepresentationPart()
    assert set(RepresentationPart.model_fields) == set(Choice.__dataclass_fields__)
    assert Choice(**part.representation) == default
    assert set(did.Representation.__annotations__) == set(part.representation)


@pytest.mark.parametrize(
    ("function", "part", "left_out"),
    [
        (did.dissimilarity, DidPart, set()),
        (did.matrix, DidMatrixPart, {"output", "overwrite"}),
        (did.nearest, DidNearestPart, set()),
    ],
)
def test_parts__have_the_keywords_and_defaults_of_their_function(function, part, left_out):
    wanted = dict(inspect.signature(function).parameters)
    wanted = {name: about for name, about in wanted.items() if about.kind is not about.VAR_KEYWORD}
    fields = set(part.model_fields) - set(RepresentationPart.model_fields) - {"dim"}
    assert fields == set(wanted) - left_out
    for name in fields - {"f", "g", "query", "collection"}:
        assert part.model_fields[name].default == wanted[name].default, name
    assert {"relative", "scale"} == set(StrengthPart.model_fields)


def test_load__reads_every_key(load, tmp_path):
    text = (
        "  x_kernel: {name: matern, nu: 1.5, length_scale: 0.3}\n"
        "  y_kernel: {name: gaussian, sigma: 0.4}\n  mask: m.npy\n  x_landmarks: random:50\n"
        "  y_landmarks: /y.npy\n  normalize: none\n  weights: coslat\n  nan: zero_weight\n"
        "  dims: [y, x]\n  value_dim: colour\n  dtype: float64\n  jitter: 1e-9\n  seed: 3\n"
        "  lam: {lam}\n  relative: true\n  scale: unit\n"
    )
    many = text.replace("{lam}", "[1e-4, 1]")
    one = load(
        "did:\n  f: {path: a.npy, row: 2}\n  g: {path: b, image_size: [4, 5]}\n"
        f"  promise: true\n{many}"
    )
    assert one.did.model_fields_set == set(DidPart.model_fields)
    assert one.comparison.lam == [1e-4, 1]
    assert (one.did.f.name, one.did.g.image_size) == ("a.npy[2]", [4, 5])
    assert one.did.mask == str(tmp_path / "m.npy")
    assert one.did.x_kernel.build() == Matern(1.5, 0.3)
    assert one.did.y_landmarks == "/y.npy"
    matrix = load(f"did_matrix:\n  collection: a\n  other: {{path: b}}\n  dim: t\n{many}")
    assert matrix.did_matrix.model_fields_set == set(DidMatrixPart.model_fields)
    near = text.replace("{lam}", "rate")
    nearest = load(f"did_nearest:\n  query: a\n  collection: b\n  dim: t\n  k: 3\n{near}")
    assert nearest.did_nearest.model_fields_set == set(DidNearestPart.model_fields)
    assert nearest.did_nearest.judged == set()


PAIR = "did:\n  f: a.npy\n  g: b.npy\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("did:\n  f: a.npy\n", "line 1: did.g is missing: what is searched for it"),
        (PAIR + "  k: 3\n", "line 4: did.k is not a key here."),
        (PAIR + "  nonfinite: drop\n", "line 4: did.nonfinite is not a key here. Known keys: f, g"),
        (PAIR + "  lam: 0\n", "line 4: did.lam must be a positive number, a list of them, or 'ra"),
        (PAIR + "  lam: []\n", "line 4: did.lam must be a positive number, a list of them, or"),
        (PAIR + "  lam: [1, x]\n", "line 4: did.lam must be a positive number"),
        (PAIR + "  lam: [1, 1]\n", "line 4: did.lam must not name a number twice; got [1, 1]."),
        (PAIR + "  lam: rates\n", "line 4: did.lam must be a positive number, a list of them, or"),
        (PAIR + "  mask: blakman\n", "line 4: did.mask must be blackman, none, or the path of a ."),
        (PAIR + "  mask: [1]\n", "line 4: did.mask must be blackman, none, or the path of a .npy"),
        (PAIR + "  weights: cos\n", "line 4: did.weights must be none, coslat, or the path of a"),
        (PAIR + "  x_landmarks: 0\n", "line 4: did.x_landmarks must be a number of grid points"),
        (PAIR + "  x_landmarks: grid\n", "line 4: did.x_landmarks must be a number of grid"),
        (PAIR + "  y_landmarks: true\n", "line 4: did.y_landmarks must be a number of grid"),
        (PAIR + "  normalize: no\n", "line 4: did.normalize must be 'auto', 'imagenet', 'standard"),
        (PAIR + "  nan: drop\n", "line 4: did.nan must be 'raise' or 'zero_weight'; got 'drop'."),
        (PAIR + "  scale: small\n", "line 4: did.scale must be 'paper' or 'unit'; got 'small'."),
        (PAIR + "  dtype: int8\n", "line 4: did.dtype must be 'float32' or 'float64'"),
        (PAIR + "  jitter: -1\n", "line 4: did.jitter must be greater than or equal to 0; got -1."),
        (
            PAIR + "  x_kernel: median\n",
            "line 4: did.x_kernel must be a mapping such as {name: gau",
        ),
        (
            PAIR + "  x_kernel: {name: gaussian, bandwidth: median}\n",
            "line 4: did.x_kernel has the rule 'median'; give sigma, as there is no rule here.",
        ),
        (
            PAIR + "  y_kernel:\n    name: gaussian\n    sigma: 0\n",
            "line 6: did.y_kernel.sigma must be greater than 0; got 0.",
        ),
        ("did:\n  f: a\n  g: {path: b, row: -1}\n", "line 3: did.g.row must be greater than or eq"),
        (
            "did:\n  f: {path: a, image_size: [0, 4]}\n  g: b\n",
            "line 2: did.f.image_size must be a height and a width, each a whole number above 0; g",
        ),
        (
            PAIR + "  lam: [1, 2]\noutput: {sheet: a.png}\n",
            "line 4: did.lam must be one number for a picture of what matches.",
        ),
        (
            PAIR + "output: {sheet: a.png, images: b.npy}\n",
            "line 4: output.images is for modes; leave it out.",
        ),
        (
            "did_matrix:\n  collection: a\noutput: {sheet: a.png}\n",
            "line 3: output.sheet is a picture of modes, of did, of mmdpca or of a background; no",
        ),
        ("did_matrix:\n  collection: a\n  others: b\n", "is not a key here. Did you mean other?"),
        ("did_matrix:\n  collection: a\n  other: {p: b}\n", "line 3: did_matrix.other.path is"),
        (
            "did_nearest:\n  query: a\n  collection: b\n  lam: [1, 2]\n",
            "lam must be one positive n",
        ),
        (
            "did_nearest:\n  query: a\n  collection: b\n  k: 0\n",
            "line 4: did_nearest.k must be gre",
        ),
    ],
)
def test_load__refuses(load, text, message):
    with pytest.raises(JobFileError) as caught:
        load(text)
    assert message in str(caught.value)
