"""What the axes of a datum are."""

import numpy as np
import pytest
import xarray as xr

from bigkd import did
from bigkd.errors import InputError


def data(names, shape, dims):
    generator = np.random.default_rng(0)
    return xr.Dataset({name: (dims, generator.random(shape)) for name in names})


def test_dissimilarity__refuses_variables_in_another_order():
    f = data("tp", (9, 8), ("y", "x"))
    with pytest.raises(InputError, match="f has the values t, p and g p, t; expected the same in"):
        did.dissimilarity(f, f[["p", "t"]])


def test_matrix__of_variables_counts_data():
    found = did.matrix(data("tp", (3, 9, 8), ("time", "y", "x")), y_landmarks=4, x_landmarks=4)
    assert found.sizes["reference"] == 3
