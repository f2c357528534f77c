import importlib.util

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


NAMESPACES = [
    pytest.param(np.array, id="numpy"),
    pytest.param(_read_only, id="read-only"),
    pytest.param(array_api_strict.asarray, id="array-api-strict"),
]
if importlib.util.find_spec("cupy") is not None:  # `pytest -m gpu`, on a machine that has one
    cupy = importlib.import_module("cupy")
    NAMESPACES.append(pytest.param(cupy.asarray, id="cupy", marks=pytest.mark.gpu))


@pytest.fixture(params=NAMESPACES)
def put(request):
    """Moves a NumPy array to the namespace under test."""
    return request.param
