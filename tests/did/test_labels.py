import numpy as np
import pytest
import xarray as xr

from bigkd import did
from bigkd.errors import DataError, InputError
from bigkd.kernels import Gaussian
from tests.did.test_dissimilarity import smooth


def labelled(seed, shape=(16, 16)):
    lat, lon = np.linspace(-60, 60, shape[0]), np.linspace(0, 90, shape[1])
    coords = {"lat": lat, "lon": lon}
    return xr.DataArray(smooth(seed, shape, 3), coords, ("lat", "lon", "channel"))


def value(f, g, **how):
    return float(did.dissimilarity(f, g, y_landmarks=4, **how)["dissimilarity"][0])


def test_dimensions__in_another_order_are_put_in_the_first_ones():
    f, g = labelled(0), labelled(1)
    turned = g.transpose("channel", "lon", "lat")
    assert value(f, turned, weights="coslat") == value(f, g, weights="coslat")
    xr.testing.assert_identical(
        did.match(f, turned, y_landmarks=4)["q"], did.match(f, g, y_landmarks=4)["q"]
    )
    stack = xr.concat([f, g], "sample")
    expected = did.matrix(stack, y_landmarks=4)["dissimilarity"]
    found = did.matrix(stack, stack.transpose("sample", "lon", "channel", "lat"), y_landmarks=4)
    np.testing.assert_allclose(found["dissimilarity"], expected, rtol=1e-9)


def test_samples__are_along_the_axis_of_that_name():
    stack = xr.concat([labelled(at) for at in range(3)], "sample")
    expected = did.matrix(stack, y_landmarks=4)["dissimilarity"]
    last = did.matrix(stack.transpose("lat", "lon", "channel", "sample"), y_landmarks=4)
    np.testing.assert_allclose(last["dissimilarity"], expected, rtol=1e-9)


def test_masks__follow_their_coordinates():
    f, g = labelled(0), labelled(1)
    land = xr.DataArray(
        np.tile(np.arange(16.0) < 6, (16, 1)).T, {"lat": f["lat"], "lon": f["lon"]}, ("lat", "lon")
    )
    expected = value(f, g, mask=land.values)
    assert value(f, g, mask=land) == expected
    assert value(f, g, mask=land.isel(lat=slice(None, None, -1))) == expected
    with pytest.raises(InputError, match="other coordinates along 'lat'"):
        value(f, g, mask=land.assign_coords(lat=land["lat"] + 1))


def test_queries__are_never_dropped():
    data = np.stack([smooth(at, (12, 12), 3) for at in range(3)])
    queries = data[:2].copy()
    queries[0, 3, 3] = np.nan
    with pytest.raises(DataError, match="query"):
        did.nearest(queries, data, 1, nonfinite="drop")


def test_float32__is_not_used_where_kernels_are_too_wide():
    f, g = ((255 * smooth(at, (15, 14), 3)).astype(np.uint8) for at in (0, 1))
    wide = {"x_kernel": Gaussian(0.5), "y_kernel": Gaussian(1.0)}
    found = did.dissimilarity(f, g, **wide)
    assert found.attrs["dtype"] == "float64"
    exact = did.dissimilarity(f / 255, g / 255, **wide)
    np.testing.assert_allclose(found["dissimilarity"], exact["dissimilarity"], rtol=1e-6)
    with pytest.raises(InputError, match="dtype='float32' is too coarse"):
        did.dissimilarity(f, g, dtype="float32", **wide)


def test_landmarks__of_positions_lie_in_the_domain():
    with pytest.raises(InputError, match=r"x_landmarks must lie in the domain, which is -1 to 1"):
        value(labelled(0), labelled(1), x_landmarks=np.asarray([[0.0, 30.0], [10.0, 60.0]]))


def test_variables__share_their_dimensions():
    field = labelled(0).isel(channel=0)
    odd = xr.Dataset({"t": field, "edge": field.isel(lon=0)})
    with pytest.raises(InputError, match=r"must share their dimensions; 'edge' has"):
        did.dissimilarity(odd, odd)


def test_coordinates__are_the_same_up_to_rounding_and_no_further():
    f, g = labelled(0), labelled(1)
    rounded = g.assign_coords(lat=g["lat"].astype("f4"), lon=g["lon"] * (1 + 1e-15))
    assert value(f, rounded) == value(f, g)
    days = np.linspace(60000.0, 60000.15, 16)
    late, later = f.assign_coords(lat=days), g.assign_coords(lat=days + 0.01)
    with pytest.raises(InputError, match="other coordinates along 'lat'"):
        value(late, later)
