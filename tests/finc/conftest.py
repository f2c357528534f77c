import numpy as np
import pytest

from bigkd.backends import rng


def clusters(n, modes, *, seed, d=16, spread=0.5, gap=4.0, dtype="float32"):
    """Rows of a mixture: `modes` name its clusters, whose centres are the same for every seed."""
    centres = gap * rng(99).standard_normal((64, d))
    generator = rng(seed, 1)
    label = generator.choice(np.asarray(modes), n)
    rows = centres[label] + spread * generator.standard_normal((n, d))
    return rows.astype(dtype), label


@pytest.fixture(scope="session")
def mixture():
    """Test set with the modes 0, 1, 2 that the reference lacks; both share 3 to 19."""
    test, label = clusters(3000, range(20), seed=1)
    reference, _ = clusters(2500, range(3, 20), seed=2)
    return test, reference, label
