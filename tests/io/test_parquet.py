import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bigkd.errors import DataError, EmptyInputError, InputError, StoreError
from bigkd.io import open_rows

N, D = 17, 4
X = np.arange(N * D, dtype="f4").reshape(N, D)


def lists(x=X, kind=None):
    return pa.array(list(x), type=kind or pa.list_(pa.from_numpy_dtype(x.dtype)))


def write(path, group_size=5, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=group_size)
    return path


def several(folder):
    folder.mkdir()
    write(folder / "b.parquet", x=lists(X[6:]))
    write(folder / "a.parquet", x=lists(X[:6]))
    write(folder / "empty.parquet", x=lists(X[:0]))
    (folder / "notes.txt").write_text("not rows")
    return folder


KINDS = {
    "lists": lambda p: write(p / "x.parquet", x=lists()),
    "large lists": lambda p: write(p / "x.parquet", x=lists(kind=pa.large_list(pa.float32()))),
    "fixed lists": lambda p: write(p / "x.parquet", x=lists(kind=pa.list_(pa.float32(), D))),
    "lists beside labels": lambda p: write(p / "x.parquet", id=pa.array(range(N)), x=lists()),
    "columns": lambda p: write(p / "x.parquet", **{f"c{at}": X[:, at] for at in range(D)}),
    "columns beside text": lambda p: write(
        p / "x.parquet", t=pa.array(["?"] * N), **{f"c{at}": X[:, at] for at in range(D)}
    ),
    "several files": lambda p: several(p / "x"),
    "one group": lambda p: write(p / "x.parquet", group_size=100, x=lists()),
    "groups of one": lambda p: write(p / "x.parquet", group_size=1, x=lists()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_parquet__reads_the_same_rows(tmp_path, kind):
    source = open_rows(KINDS[kind](tmp_path), name="rows")
    assert (source.n_rows, source.width, source.dtype) == (N, D, "f4")
    blocks = [source.read(at) for at in range(source.n_blocks)]
    assert [len(block) for block in blocks] == np.diff(source.bounds).tolist()
    assert all(len(block) for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), X)
    for start, stop in ((0, N), (3, 4), (4, 11), (16, 17)):
        np.testing.assert_array_equal(source.take(start, stop), X[start:stop])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1", "i4", "i8"])
@pytest.mark.parametrize("fixed", [False, True])
def test_parquet__keeps_types(tmp_path, dtype, fixed):
    x = X.astype(dtype)
    kind = pa.list_(pa.from_numpy_dtype(x.dtype), D if fixed else -1)
    source = open_rows(write(tmp_path / "x.parquet", x=lists(x, kind)), name="rows")
    assert source.dtype == dtype
    assert source.read(0).dtype == dtype
    np.testing.assert_array_equal(source.take(0, N), x)


def test_parquet__columns_are_chosen(tmp_path):
    path = write(tmp_path / "x.parquet", a=X[:, 0], b=X[:, 1].astype("f8"), x=lists(), y=lists())
    source = open_rows(path, name="rows", columns=("b", "a"))
    np.testing.assert_array_equal(source.take(0, N), X[:, [1, 0]])
    assert source.dtype == "f8"
    np.testing.assert_array_equal(open_rows(path, name="r", columns=("y",)).take(0, N), X)
    one = open_rows(path, name="rows", columns=("a",))
    np.testing.assert_array_equal(one.take(0, N), X[:, :1])
    with pytest.raises(
        InputError, match=r"rows: .*2 columns of lists \(x, y\).*columns=\('NAME',\)"
    ):
        open_rows(path, name="rows")
    with pytest.raises(InputError, match=r"no column 'z'; it has \['a', 'b', 'x', 'y'\]"):
        open_rows(path, name="rows", columns=("z",))
    with pytest.raises(InputError, match=r"'x' of .* holds lists, which cannot be combined"):
        open_rows(path, name="rows", columns=("a", "x"))


def test_parquet__missing_numbers_are_nan(tmp_path):
    path = write(tmp_path / "x.parquet", a=pa.array([1.0, None, 3.0]), b=pa.array([1.0, 2.0, 3.0]))
    rows = open_rows(path, name="rows").read(0)
    np.testing.assert_array_equal(rows, [[1, 1], [np.nan, 2], [3, 3]])
    path = write(tmp_path / "x.parquet", x=pa.array([[1.0, None], [3.0, 4.0]]))
    rows = open_rows(path, name="rows").read(0)
    np.testing.assert_array_equal(rows, [[1, np.nan], [3, 4]])


def test_parquet__missing_integers_are_refused(tmp_path):
    path = write(tmp_path / "x.parquet", a=pa.array([1, None]), b=pa.array([1, 2]))
    with pytest.raises(DataError, match=r"row group 0: column 'a' has 1 missing.*int64 has no NaN"):
        open_rows(path, name="rows").read(0)


UNEQUAL = {
    "missing list": [[1.0, 2.0], None, [3.0, 4.0]],
    "other length": [[1.0, 2.0], [1.0, 2.0, 3.0]],
    "lengths that add up": [[1.0, 2.0], [1.0], [1.0, 2.0, 3.0]],
    "missing at first": [None, [1.0, 2.0]],
}


@pytest.mark.parametrize("kind", UNEQUAL)
def test_parquet__lists_of_unequal_length_are_refused(tmp_path, kind):
    source = open_rows(write(tmp_path / "x.parquet", x=pa.array(UNEQUAL[kind])), name="rows")
    with pytest.raises(DataError, match=r"rows: x\.parquet, row group 0: column 'x'.*not 2;"):
        source.read(0)


def test_parquet__a_file_with_other_columns_is_refused(tmp_path):
    write(tmp_path / "a.parquet", x=lists())
    write(tmp_path / "b.parquet", y=lists())
    with pytest.raises(InputError, match=r"b\.parquet has no column 'x'"):
        open_rows(tmp_path, name="rows")


def test_parquet__files_of_several_types_are_read_as_the_widest(tmp_path):
    write(tmp_path / "a.parquet", x=lists())
    write(tmp_path / "b.parquet", x=lists(X.astype("f8")))
    source = open_rows(tmp_path, name="rows")
    assert source.dtype == "f8"
    assert source.read(0).dtype == "f8"


def test_parquet__that_is_empty_or_has_no_numbers(tmp_path):
    with pytest.raises(EmptyInputError, match="0 rows"):
        open_rows(write(tmp_path / "e.parquet", x=lists(X[:0])), name="rows")
    with pytest.raises(InputError, match="elements of type object"):
        open_rows(write(tmp_path / "t.parquet", x=pa.array([["a"]])), name="rows")
    with pytest.raises(InputError, match="0 columns of lists"):
        open_rows(write(tmp_path / "n.parquet", x=pa.array(["a"])), name="rows")


def test_parquet__damaged(tmp_path):
    path = write(tmp_path / "x.parquet", x=lists())
    whole = path.read_bytes()
    for keep in (0, 10, len(whole) - 5):
        path.write_bytes(whole[:keep])
        with pytest.raises(StoreError, match=r"rows: .*x\.parquet cannot be read as Parquet"):
            open_rows(path, name="rows")
    path.write_bytes(whole)
    source = open_rows(path, name="rows")
    path.write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])
    with pytest.raises(DataError, match="rows 0 to 4 cannot be read"):
        source.read(0)
