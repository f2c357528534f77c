"""Jobs of MMD-PCA: keys, defaults, and what is refused."""

import inspect

import pytest

from bigkd import mmdpca
from bigkd.errors import JobFileError
from bigkd.jobs.comparisons import (
    MmdpcaBackgroundPart,
    MmdpcaDistancePart,
    MmdpcaPart,
    MmdpcaProjectPart,
)
from bigkd.kernels import Gaussian


@pytest.mark.parametrize(
    ("function", "part", "data", "unused"),
    [
        (mmdpca.fit, MmdpcaPart, {"X": "data"}, set()),
        (mmdpca.project, MmdpcaProjectPart, {"X": "data"}, {"seed"}),
        (mmdpca.mmd_to_projection, MmdpcaDistancePart, {"X": "data"}, set()),
        (mmdpca.background, MmdpcaBackgroundPart, {}, set()),
    ],
)
def test_parts__have_the_keywords_and_defaults_of_their_function(function, part, data, unused):
    wanted = dict(inspect.signature(function).parameters)
    wanted = {data.get(name, name): about for name, about in wanted.items() if name != "options"}
    fields = part.model_fields
    assert set(wanted) == set(fields) - {"dim", "nonfinite"} - unused
    for name in set(wanted) - {"kernel", "weights"}:
        default = wanted[name].default
        if default is inspect.Parameter.empty:
            assert fields[name].is_required(), name
        else:
            assert fields[name].default == default, name
    if "kernel" in fields:
        assert fields["kernel"].default.build() == wanted["kernel"].default
        assert (fields["weights"].default, wanted["weights"].default) == ("none", None)


def test_load__reads_every_key(load, tmp_path):
    subspace = (
        "  kernel: {name: gaussian, sigma: 2}\n  a: 1\n  center: true\n  weights: w.npy\n"
        "  method: nystrom\n  n_landmarks: 10\n  n_frequencies: 20\n  n_directions: 5\n  seed: 3\n"
        "  nonfinite: drop\n  dim: time\n  k: 4\n"
    )
    fit = load(f"mmdpca:\n  data: {{path: a, block_rows: 3}}\n{subspace}  n_points: 9\n  mmd: no\n")
    assert fit.mmdpca.model_fields_set == set(MmdpcaPart.model_fields)
    assert fit.comparison.kernel.build() == Gaussian(2.0)
    assert fit.comparison.weights == str(tmp_path / "w.npy")
    assert fit.comparison.judged == {"subspace_error"}
    assert load("mmdpca: {data: a, k: 2}\n").comparison.judged == {
        "subspace_error", "mmd2", "explained_share",
    }  # fmt: skip
    of_video = load(
        f"mmdpca_background:\n  frames: a\n{subspace}  statistic: mean\n  white: 255\n"
    ).comparison
    assert of_video.model_fields_set == set(MmdpcaBackgroundPart.model_fields)
    scores = load("mmdpca_project: {data: a, fit: b.zarr, dim: t, nonfinite: drop, seed: 0}\n")
    assert scores.comparison.model_fields_set == set(MmdpcaProjectPart.model_fields)
    assert scores.comparison.fit == str(tmp_path / "b.zarr")
    apart = load(
        "mmdpca_distance: {data: a, fit: /b, dim: t, nonfinite: drop, seed: 1, method: sample, "
        "n_points: 9}\n"
    ).comparison
    assert apart.model_fields_set == set(MmdpcaDistancePart.model_fields)
    assert apart.judged == {"mmd2"}


FIT = "mmdpca:\n  data: a.npy\n  k: 2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mmdpca:\n  data: a\n", "line 1: mmdpca.k is missing: number of components."),
        ("mmdpca:\n  k: 2\n", "line 1: mmdpca.data is missing: the collection whose subspace is"),
        (FIT + "  kernels: gauss\n", "line 4: mmdpca.kernels is not a key here. Did you mean kern"),
        (
            FIT + "  kernel: gausss\n",
            "line 4: mmdpca.kernel must be gauss, laplace, poisson, kurtos",
        ),
        (FIT + "  kernel: 3\n", "line 4: mmdpca.kernel must be gauss, laplace, poisson, kurtosis"),
        (
            FIT + "  kernel: {name: gaussien}\n",
            "line 4: mmdpca.kernel has the name 'gaussien', which must be one of 'gauss', "
            "'poisson', 'kurtosis', 'laplace', 'higher_moments', 'gaussian', 'matern', "
            "'inverse_multiquadric', 'triangle', 'epanechnikov', 'polynomial'. Did you mean gauss",
        ),
        (FIT + "  kernel: {sigma: 3}\n", "line 4: mmdpca.kernel must have a name: gauss, poisson"),
        (
            FIT + "  kernel:\n    name: gauss\n    a: 2\n",
            "line 6: mmdpca.kernel.a is not a key here. Known keys: name.",
        ),
        (
            FIT + "  kernel: {name: laplace, length_scale: 0}\n",
            "line 4: mmdpca.kernel.length_scale must be greater than 0; got 0.",
        ),
        (
            FIT + "  kernel: {name: gaussian, bandwidth: median}\n",
            "line 4: mmdpca.kernel has the rule 'median'; give sigma, as there is no rule here.",
        ),
        (
            FIT + "  kernel: {name: higher_moments, weights: [0, -1]}\n",
            "line 4: mmdpca.kernel HigherMoments needs numbers that are finite, not negative",
        ),
        (
            FIT + "  kernel: {name: higher_moments}\n",
            "line 4: mmdpca.kernel.weights is missing: the w, that of order 1 first",
        ),
        (FIT + "  a: 0\n", "line 4: mmdpca.a must be greater than 0; got 0."),
        (FIT + "  a: -1.5\n", "line 4: mmdpca.a must be greater than 0; got -1.5."),
        (FIT + "  a: .nan\n", "line 4: mmdpca.a must be a finite number; got nan."),
        (FIT + "  weights: cos\n", "line 4: mmdpca.weights must be none, coslat, or the path of a"),
        (FIT + "  method: fast\n", "line 4: mmdpca.method must be 'auto', 'gram', 'pairs', 'nyst"),
        (FIT + "  n_landmarks: 0\n", "line 4: mmdpca.n_landmarks must be greater than or equal to"),
        (FIT + "  center: 1\n", "line 4: mmdpca.center must be a valid boolean; got 1."),
        (
            "mmdpca:\n  data: {path: a, row: 2}\n  k: 2\n",
            "line 2: mmdpca.data.row is not a key here.",
        ),
        (
            FIT + "output: {sheet: a.png, images: b.npy}\n",
            "line 4: output.images is for modes; leave it out.",
        ),
        (
            "mmdpca_project: {data: a, fit: b}\noutput: {sheet: a.png}\n",
            "line 2: output.sheet is a picture of modes, of did, of mmdpca or of a background; "
            "none of them is made.",
        ),
        ("mmdpca_project: {data: a}\n", "mmdpca_project.fit is missing: store of a result of mmd"),
        ("mmdpca_project: {data: a, fit: 3}\n", "mmdpca_project.fit must be a path, as text; got"),
        (
            "mmdpca_distance: {data: a, fit: b, method: nystrom}\n",
            "line 1: mmdpca_distance.method must be 'auto', 'exact' or 'sample'; got 'nystrom'.",
        ),
        (
            "mmdpca_background: {frames: a, statistic: mode}\n",
            "line 1: mmdpca_background.statistic must be 'median' or 'mean'; got 'mode'.",
        ),
        (
            "mmdpca_background: {frames: a, white: 0}\n",
            "line 1: mmdpca_background.white must be greater than 0; got 0.",
        ),
    ],
)
def test_load__refuses(load, text, message):
    with pytest.raises(JobFileError) as caught:
        load(text)
    assert message in str(caught.value)
