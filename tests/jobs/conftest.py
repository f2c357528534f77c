import numpy as np
import pytest


@pytest.fixture
def rows(tmp_path):
    """Paths of two collections; the test set has a mode that the reference lacks."""
    generator = np.random.default_rng(0)
    shared = generator.normal(size=(300, 4))
    test = np.concatenate([shared[:100], 20 + generator.normal(size=(60, 4))])
    np.save(tmp_path / "test.npy", test)
    np.save(tmp_path / "reference.npy", shared[100:])
    return tmp_path
