import importlib.util
import os
import shutil

import array_api_strict
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    max_examples=50,
    deadline=None,
    derandomize=os.environ.get("BIGKD_CI") == "1",  # what has passed passes again
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


def require_tool(name):
    """Path of the program `name`; without it the test is skipped, or fails under BIGKD_CI=1."""
    sbin = os.pathsep.join(("/usr/local/sbin", "/usr/sbin", "/sbin"))  # not on every user's path
    found = shutil.which(name) or shutil.which(name, path=sbin)
    if found is not None:
        return found
    if os.environ.get("BIGKD_CI") == "1":
        pytest.fail(f"{name} is not installed, and BIGKD_CI=1 says that it is; see .ci/run")
    return pytest.skip(f"needs the program {name}, which is not installed here")
