import dask.array as da
import numpy as np
import pytest
import xarray as xr

from bigkd import shapes
from bigkd.errors import DataError, EmptyInputError, InputError, ShapeError
from tests.shapes.helpers import crooked

ELL = np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]])


def test_polyline__has_midpoints_tangents_and_lengths():
    curve = shapes.polyline(ELL)
    assert curve["point"].values.tolist() == [[1.5, 0.0], [3.0, 2.0]]
    assert curve["weight"].values.tolist() == [3.0, 4.0]
    assert curve["vector"].values.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert dict(curve.sizes) == {"element": 2, "axis": 2, "component": 2, "corner": 2}
    assert not curve.attrs["closed"]
    assert curve.attrs["total_measure"] == 7.0
    assert curve.attrs["reach"] == 2.0
    assert curve.attrs["mean_square_distance"] == pytest.approx((3**3 + 4**3) / 12 / 7)
    assert curve.attrs["bigkd_kind"] == "shape"
    assert curve.attrs["form"] == "curve"


@pytest.mark.parametrize("vertices", [ELL, np.concatenate([ELL, ELL[:1]])], ids=["open", "joined"])
def test_polyline__closed_is_joined_once(vertices):
    curve = shapes.polyline(vertices, closed=True)
    assert curve["weight"].values.tolist() == [3.0, 4.0, 5.0]
    assert curve.attrs["closed"]
    np.testing.assert_allclose(curve["weight"].values @ curve["vector"].values, 0.0, atol=1e-15)


def test_polyline__that_ends_where_it_begins_is_closed():
    assert shapes.polyline(np.concatenate([ELL, ELL[:1]])).attrs["closed"]


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_polyline__in_any_dimension(d):
    vertices = crooked(0, d)
    curve = shapes.polyline(vertices)
    edges = np.diff(vertices, axis=0)
    np.testing.assert_allclose(
        curve["weight"].values[:, None] * curve["vector"].values, edges, rtol=1e-14, atol=1e-15
    )
    np.testing.assert_allclose((curve["vector"].values ** 2).sum(axis=1), 1.0, rtol=1e-14)


def test_polyline__of_one_segment():
    curve = shapes.polyline([[1, 1], [1, 3]])
    assert curve["point"].values.tolist() == [[1.0, 2.0]]
    assert curve["vector"].values.tolist() == [[0.0, 1.0]]


def test_polyline__several_curves_are_not_joined():
    both = shapes.polyline([ELL, ELL + 10.0])
    assert both.sizes["element"] == 4
    assert both.attrs["total_measure"] == 14.0
    assert not both.attrs["closed"]
    assert shapes.polyline([ELL, ELL + 10.0], closed=True).attrs["total_measure"] == 24.0


@pytest.mark.parametrize(
    "given",
    [
        ELL.tolist(),
        [tuple(row) for row in ELL],
        list(ELL),
        ELL.astype("f4"),
        ELL.astype("i8"),
        xr.DataArray(ELL, dims=("row", "axis")),
        da.from_array(ELL, chunks=2),
        [ELL.tolist()],
        [xr.DataArray(ELL)],
    ],
    ids=["lists", "tuples", "rows", "f4", "i8", "xarray", "dask", "one curve", "one xarray"],
)
def test_polyline__takes_any_array(given):
    xr.testing.assert_identical(shapes.polyline(given), shapes.polyline(ELL))


def test_polyline__takes_arrays_of_any_namespace(put):
    xr.testing.assert_identical(shapes.polyline(put(ELL)), shapes.polyline(ELL))


def test_polyline__keeps_its_digits_at_any_scale():
    for scale in (1e-140, 1e-3, 1e140):
        curve = shapes.polyline(ELL * scale)
        np.testing.assert_allclose(curve["weight"].values, [3.0 * scale, 4.0 * scale], rtol=1e-15)
        np.testing.assert_allclose(curve["vector"].values, np.eye(2), atol=1e-15)


def test_polyline__does_not_share_memory_with_its_input():
    vertices = ELL.copy()
    curve = shapes.polyline(vertices)
    vertices += 1.0
    assert curve["corner"].values[0, 0].tolist() == [0.0, 0.0]


def test_polyline__degenerate_segment_is_named():
    vertices = np.repeat(ELL, [1, 2, 1], axis=0)
    with pytest.raises(DataError, match=r"segment 1 has no extent.*\[3\.0, 0\.0\].*1 such among 3"):
        shapes.polyline(vertices)


def test_polyline__degenerate_segments_are_dropped_and_counted():
    curve = shapes.polyline(np.repeat(ELL, [3, 2, 1], axis=0), degenerate="drop")
    assert curve.attrs["n_dropped"] == 3
    xr.testing.assert_equal(curve, shapes.polyline(ELL))


@pytest.mark.parametrize(
    ("vertices", "error", "match"),
    [
        ([], EmptyInputError, "vertices has no curve"),
        ([[0.0, 1.0]], ShapeError, "curve 0 must have 2 vertices or more; got 1"),
        ([ELL, ELL[:1]], ShapeError, "curve 1 must have 2 vertices or more"),
        ([1.0, 2.0, 3.0], ShapeError, r"curve 0 must have shape \(n, d\).*\(3,\)"),
        (np.zeros((2, 3, 2)), ShapeError, "curve 0 must have shape"),
        (np.zeros((0, 2)), EmptyInputError, "curve 0 is empty"),
        ([[0.0, 1.0], [2.0]], ShapeError, "same width"),
        ([[[0.0, 1.0], [2.0]]], ShapeError, "same width"),
        ([ELL, np.eye(3)], ShapeError, r"same dimension; got \[2, 3\]"),
        ([[0.0, 1.0], [np.nan, 0.0]], DataError, "curve 0 must be finite; row 1"),
        ([[0.0, 1.0], [np.inf, 0.0]], DataError, "curve 0 must be finite; row 1"),
        ([["a", "b"], ["c", "d"]], InputError, "curve 0 must be real numbers"),
        (ELL * 1j, InputError, "curve 0 must be real numbers; got complex128"),
        (ELL > 1, InputError, "curve 0 must be real numbers; got bool"),
    ],
)
def test_polyline__bad_vertices(vertices, error, match):
    with pytest.raises(error, match=match):
        shapes.polyline(vertices)


def test_polyline__bad_options():
    with pytest.raises(InputError, match="orientation must be"):
        shapes.polyline(ELL, orientation="up")
    with pytest.raises(InputError, match="degenerate must be"):
        shapes.polyline(ELL, degenerate="keep")


def test_polyline__all_degenerate_leaves_nothing():
    with pytest.raises(EmptyInputError, match="none of these has"):
        shapes.polyline(np.ones((3, 2)), degenerate="drop")


def test_point_set__has_no_vectors():
    points = shapes.point_set(ELL, weights=[1, -2, 3])
    assert set(points.data_vars) == {"point", "weight"}
    assert points["weight"].values.tolist() == [1.0, -2.0, 3.0]
    assert points.attrs["total_measure"] == 6.0
    assert points.attrs["orientation"] == "none"
    assert shapes.point_set(ELL)["weight"].values.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("weights", "error", "match"),
    [
        ([1.0, 2.0], ShapeError, r"weights must have shape \(3,\).*got \(2,\)"),
        ([[1.0, 2.0, 3.0]], ShapeError, r"got \(1, 3\)"),
        ([1.0, np.nan, 2.0], DataError, r"weights\[1\] is not finite"),
        (["a", "b", "c"], InputError, "weights must be real numbers"),
    ],
)
def test_point_set__bad_weights(weights, error, match):
    with pytest.raises(error, match=match):
        shapes.point_set(ELL, weights=weights)
