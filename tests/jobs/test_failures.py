"""What is said of errors that do not end a run."""

import pytest

from bigkd.errors import DataError
from bigkd.jobs.comparisons.distance import DistancePart
from bigkd.jobs.failures import locate, told

PART = DistancePart.model_validate({"x": "a.npy", "y": "s3://bucket/b.zarr"})


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("x: row 3 is odd", " x is a.npy."),
        ("y: row 3 is odd", " y is s3://bucket/b.zarr."),
        ("x: row 3 of a.npy is odd", ""),
        ("the 3 rows of x: odd", ""),
        ("x.path: odd", ""),
        ("kernel: odd", ""),
    ],
)
def test_locate__notes_the_store_of_a_collection_that_is_named_alone(said, noted):
    error = DataError(said)
    locate(error, PART)
    assert told(error) == said + noted


@pytest.mark.parametrize("kind", [DataError, ValueError])
def test_told__has_no_secrets(kind):
    error = kind("https://me:swordfish@host/x cannot be read")
    error.add_note("x is https://me:swordfish@host/x.")
    assert "host/x cannot be read" in told(error)
    assert "swordfish" not in told(error)
