import array_api_strict
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("ci", settings.get_profile("default"), max_examples=300, derandomize=True)
settings.load_profile("default")


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
