import array_api_strict
import numpy as np
import pytest


def _read_only(x):
    x = np.array(x)
    x.flags.writeable = False
    return x


@pytest.fixture(
    params=[np.array, _read_only, array_api_strict.asarray],
    ids=["numpy", "read-only", "array-api-strict"],
)
def put(request):
    """Moves a NumPy array to the namespace under test."""
    return request.param
