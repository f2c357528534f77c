import numpy as np
import pytest

from bigkd.jobs import load_job


@pytest.fixture
def rows(tmp_path):
    """Paths of two collections; the test set has a mode that the reference lacks."""
    generator = np.random.default_rng(0)
    shared = generator.normal(size=(300, 4))
    test = np.concatenate([shared[:100], 20 + generator.normal(size=(60, 4))])
    np.save(tmp_path / "test.npy", test)
    np.save(tmp_path / "reference.npy", shared[100:])
    return tmp_path


@pytest.fixture
def load(tmp_path):
    """Loads a job from its text."""

    def from_text(text, suffix=".yaml"):
        path = tmp_path / f"job{suffix}"
        path.write_text(text)
        return load_job(path)

    return from_text
