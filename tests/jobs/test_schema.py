"""The JSON schema of job files: what it lets through, and what not."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from bigkd.errors import JobFileError
from bigkd.jobs import Job

ROOT = Path(__file__).parents[2]
SCHEMA = Job.model_json_schema()
SEVERAL = """\
data:
  tonight: {path: a.zarr, missing: skip}
  reference: b.zarr
comparisons:
  drift:
    distance: {x: tonight, y: reference, kernel: median, test: true}
    fail_if: {rejected: true, above: 0.1}
  new_modes:
    modes: {test: tonight, reference: reference, kernel: {name: gaussian, sigma: 2}}
    fail_if: {significant: true}
    sheet: modes.html
    images: c.zarr
  subspace:
    mmdpca: {data: tonight, k: 3, kernel: laplace}
  few:
    coreset: {data: tonight, size: 5}
  all: {distance_matrix: {collections: {a: tonight, b: reference, c: c.zarr}}}
output: {store: out, history: history.zarr, report: report.html}
cluster: {kind: local, n_workers: 2}
run: {memory_limit: 2 GiB}
"""


def problems(text):
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return [error.message for error in validator.iter_errors(yaml.safe_load(text))]


def test_schema__is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    json.dumps(SCHEMA, allow_nan=False)


@pytest.mark.parametrize(
    "text",
    [
        SEVERAL,
        "modes: {test: a, reference: {path: b, columns: [x]}}\n",
        "distance: {x: a, y: b, test: {method: exact}, kernel: {name: matern, nu: 1.5, "
        "length_scale: 2}}\n",
        "did: {f: a.npy, g: {path: b.npy, row: 3}, lam: 1e-2}\n",
        "mmdpca: {data: a, k: 2}\nrun: {scheduler: 'tcp://a:1'}\n",
    ],
)
def test_schema__lets_through_what_can_be_loaded(load, text):
    assert problems(text) == []
    load(text)


@pytest.mark.parametrize(
    "text",
    [
        SEVERAL.replace("above:", "over:"),
        SEVERAL.replace("kind: local", "kind: cloud"),
        SEVERAL.replace("  few:", "  2few:"),
        SEVERAL.replace("k: 3", "k: many"),
        SEVERAL.replace("drift:", "../drift:"),
        SEVERAL + "more: 1\n",
    ],
)
def test_schema__refuses_what_cannot_be_loaded(load, text):
    assert text != SEVERAL
    assert problems(text)
    with pytest.raises(JobFileError):
        load(text)


def test_schema__of_several_comparisons_is_what_load_reads(load, tmp_path):
    job = load(SEVERAL)
    assert list(job.entries()) == ["drift", "new_modes", "subspace", "few", "all"]
    drift = job.entries()["drift"].distance
    assert (drift.x.path, drift.x.missing) == (str(tmp_path / "a.zarr"), "skip")
    assert drift.y.path == str(tmp_path / "b.zarr")
    everything = job.entries()["all"].distance_matrix.collections
    assert [Path(part.path).name for part in everything.values()] == ["a.zarr", "b.zarr", "c.zarr"]
    assert job.store_of("few") == str(tmp_path / "out" / "few.zarr")
    assert job.keeps_summaries


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "  reference: b.zarr\n",
            "  reference: b.zarr\n  spare: c\n",
            "line 4: data.spare is used by nothing; leave it out.",
        ),
        (
            "{rejected: true, above",
            "{significant: true, above",
            "comparisons.drift.fail_if.significant is for comparisons that make modes",
        ),
        ("  few:\n", "  few few:\n", "must be a name of at most 64 letters"),
        ("    coreset: {data", "    modes: {data", "comparisons.few.modes.test is missing"),
        ("  few:\n    coreset: {data: tonight, size: 5}\n", "  few: {}\n", "expected one of modes"),
        (
            "run: {",
            "modes: {test: a, reference: b}\nrun: {",
            "modes stands beside comparisons",
        ),
        ("  reference: b", "  references: b", "Perhaps 'reference', which is no name of data,"),
        ("comparisons:", "comparison:", "comparison is not a key here. Did you mean comparisons?"),
        ("    distance:", "    distances:", "distances is not a key here. Did you mean distance?"),
        ("  few:\n", "  f w:\n", "comparisons.f w must be a name of at most 64 letters"),
        ("{path: ", "{path: $HOME/", "must be a path without variables of the environment"),
        ("  drift:", "\tdrift:", "a tab; YAML is indented with spaces"),
        ("run: {", "fail_if: {above: 1}\nrun: {", "fail_if is for each of the comparisons"),
        ("run: {", "run: {scheduler: local, ", "run.scheduler and cluster both say where"),
        ("history: history.zarr, ", "", "output.report is a page on a history"),
        ("report.html", "report.pdf", "output.report must be a local file that ends in .html"),
        ("tonight: {path", "tonight: {paths", "drift.distance.x.paths is not a key here"),
    ],
)
def test_load__refuses_several_comparisons(load, old, new, message):
    assert old in SEVERAL
    with pytest.raises(JobFileError) as caught:
        load(SEVERAL.replace(old, new))
    assert message in str(caught.value)
