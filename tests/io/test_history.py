"""Histories: what goes in comes out, in plain xarray, too; damage is noticed and loses nothing."""

import json
import os
import re
import shutil

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from bigkd.errors import InputError, LockedError, StoreError
from bigkd.io import append_run, history, history_layout, is_store, load_history, save_dataset
from bigkd.io.locks import lock


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    """Chunks of three runs and three columns, so that all boundaries are crossed; and no disk."""
    for module in (history, history_layout):
        monkeypatch.setattr(module, "CHUNK", 3)
    monkeypatch.setattr(os, "fsync", lambda file: None)


def a_run(**values):
    """A Dataset of scalars, and of lists along a dimension of their own."""
    return xr.Dataset(
        {
            name: (f"{name}.n", np.asarray(value, float)) if isinstance(value, list) else value
            for name, value in values.items()
        }
    )


def stacked(runs):
    """What the history of `runs`, dicts by their names, has to be: made by xarray's own joins."""
    rows = [a_run(run_id=name, **values) for name, values in runs.items()]
    kinds = {key: row[key].dtype.kind for row in rows for key in row}
    widths = {dim: max(row.sizes.get(dim, 0) for row in rows) for row in rows for dim in row.sizes}
    filled = []
    for row in rows:
        for key, kind in kinds.items():
            if key not in row:
                row[key] = {"U": "", "M": np.datetime64("NaT", "ns")}.get(kind, np.nan)
        filled.append(row.pad({dim: (0, n - row.sizes.get(dim, n)) for dim, n in widths.items()}))
    return xr.concat(filled, "run", data_vars="all", coords="all")


def assert_holds(path, runs):
    """`load_history` and plain xarray both find `runs`, in this order."""
    expected, found = stacked(runs), load_history(path)
    with xr.open_zarr(path) as opened:
        plain = opened.load()
    assert set(found) == set(expected)
    for name, variable in expected.items():
        for other in (found[name], plain[name]):
            assert set(other.dims) <= {"run", f"{name}.n"}
            if variable.dtype.kind == "U":
                assert other.values.tolist() == variable.values.tolist()
            else:
                kind = variable.dtype if variable.dtype.kind == "M" else float
                assert other.dtype == kind
                np.testing.assert_array_equal(other, np.broadcast_to(variable, other.shape))


def kept(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


RUNS = {
    "a": {"time": np.datetime64("2026-03-01T02:00:00.123456789"), "d.mmd": 0.5, "job": "{}"},
    "b": {"time": np.datetime64("2026-02-01"), "d.mmd": -0.0, "job": "ü\n\0.", "d.rejected": True},
    "c": {"d.mmd": np.inf, "d.eig": [1.0, 2.0]},
    "d": {"d.mmd": 2**40, "d.eig": [1.0, 2.0, 3.0, 4.0], "late": np.datetime64("1850-01-01")},
    "e": {"job": "", "d.eig": [np.nan, 5.0, np.nan]},
    "f": {"d.mmd": np.float32(0.1), "e.text": "here"},
    "g": {"d.eig": [9.0] * 7, "d.mmd": np.nan},
    "h": {"d.mmd": 1e-300},
}


def appended(path, runs=RUNS):
    for name, values in runs.items():
        assert append_run(path, a_run(**values), run_id=name)


def test_history__is_whole_after_every_run(tmp_path):
    path = tmp_path / "new" / "h.zarr"
    runs = {}
    for name, values in RUNS.items():
        assert append_run(path, a_run(**values), run_id=name)
        runs[name] = values
        assert_holds(path, runs)
    with xr.open_zarr(path, consolidated=False) as other:
        np.testing.assert_array_equal(other["d.eig"], load_history(path)["d.eig"])
    assert [inner.name for inner in path.parent.iterdir()] == ["h.zarr"]


values = st.one_of(
    st.floats(allow_nan=True),
    st.text(max_size=3),
    st.lists(st.floats(width=16), min_size=1, max_size=5),
)


@settings(max_examples=6)
@given(st.lists(st.dictionaries(st.sampled_from("xyz"), values, max_size=3), max_size=5))
def test_history__holds_any_runs_that_fit_together(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("h") / "h.zarr"
    kinds, runs = {}, {}
    for number, row in enumerate(rows):
        fitting = {key: v for key, v in row.items() if kinds.setdefault(key, type(v)) is type(v)}
        runs[f"run-{number}"] = fitting
        assert append_run(path, a_run(**fitting), run_id=f"run-{number}")
    if runs:
        assert_holds(path, runs)


def test_append_run__keeps_meaning_and_units(tmp_path):
    run = a_run(x=1.0, seconds=2.0)
    run["x"].attrs = {"long_name": "distance", "units": "1", "other": np.arange(3)}
    run["seconds"].attrs = {"units": "seconds", "long_name": "how long"}  # no duration to xarray
    append_run(tmp_path / "h.zarr", run, run_id="a")
    with xr.open_zarr(tmp_path / "h.zarr") as plain:
        for found in (plain, load_history(tmp_path / "h.zarr")):
            assert found["x"].attrs == {"long_name": "distance", "units": "1"}
            assert found["seconds"].attrs == {"long_name": "how long"}
            assert found["seconds"].dtype == np.float64
    run["x"].attrs = {"long_name": "what the first run said counts"}
    append_run(tmp_path / "h.zarr", run, run_id="b")
    assert load_history(tmp_path / "h.zarr")["x"].attrs["long_name"] == "distance"


def test_append_run__again_changes_nothing(tmp_path):
    appended(tmp_path / "h.zarr")
    before = kept(tmp_path)
    for name in ("a", "h"):
        assert not append_run(tmp_path / "h.zarr", a_run(**{"d.mmd": 7.0}), run_id=name)
    assert kept(tmp_path) == before


def test_append_run__never_changes_whole_chunks(tmp_path):
    appended(tmp_path / "h.zarr", {name: {"x": float(at)} for at, name in enumerate("abc")})
    before = kept(tmp_path)
    appended(tmp_path / "h.zarr", {"d": {"x": 9.0}})
    after = kept(tmp_path)
    assert all(after[key] == content for key, content in before.items() if "/c/" in key)


@pytest.mark.parametrize("run_id", ["", "..", "../x", "a/b", "-a", "a" * 129, ".a", "a\n", "ü"])
def test_append_run__refuses_names_of_runs_that_are_paths(tmp_path, run_id):
    with pytest.raises(InputError, match="run_id="):
        append_run(tmp_path / "h.zarr", a_run(x=1.0), run_id=run_id)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        ({"../x": 1.0}, "cannot be a variable"),
        ({"a..b": 1.0}, "cannot be a variable"),
        ({"a/b": 1.0}, "cannot be a variable"),
        ({"zarr.json": 1.0, "x" * 201: 1.0}, "cannot be a variable"),
        ({"run_digest": "x"}, "cannot be a variable"),
        ({"run": 1.0}, "cannot be a variable"),
        ({"x": 1j}, "expected one number"),
        ({"x": np.timedelta64(1, "s")}, "expected one number"),
        ({"x": [0.0] * 4097}, "expected one number"),
        ({"x": ("n", ["a"])}, "expected one number"),
        ({"x": ("../n", [1.0])}, "dimension"),
        ({"x": ("run", [1.0])}, "dimension"),
        ({"x": ("run_digest", [1.0])}, "is a variable and a dimension"),
        ({"x": ((), np.array(b"raw", dtype=object))}, "keeps numbers, text and times"),
    ],
)
def test_append_run__refuses_what_cannot_be_kept(tmp_path, run, problem):
    with pytest.raises(InputError, match=problem):
        append_run(tmp_path / "h.zarr", a_run(**run), run_id="a")
    assert list(tmp_path.iterdir()) == []


def test_append_run__refuses_urls_with_secrets(tmp_path):
    with pytest.raises(InputError, match="the history is a s3:// URL with a user name"):
        append_run("s3://me:secret@bucket/h.zarr", a_run(x=1.0), run_id="a")


def test_append_run__waits_for_others_only_so_long(tmp_path):
    with lock(tmp_path / "h.zarr.lock"), pytest.raises(LockedError, match="held by process"):
        append_run(tmp_path / "h.zarr", a_run(x=1.0), run_id="a", wait=0.2)


def test_history__is_one_however_its_place_is_spelled(tmp_path, monkeypatch):
    path, link = tmp_path / "a" / "h.zarr", tmp_path / "b" / "link.zarr"
    append_run(path, a_run(x=1.0), run_id="a")
    link.parent.mkdir()
    link.symlink_to(path)
    monkeypatch.chdir(tmp_path)
    spellings = (link, "b/link.zarr", "a/../b/link.zarr/")
    for number, spelling in enumerate(spellings):
        with lock(f"{path}.lock"), pytest.raises(LockedError, match=r"a/h.zarr.lock is held"):
            append_run(spelling, a_run(x=2.0), run_id=f"b{number}", wait=0.05)
        assert append_run(spelling, a_run(x=2.0), run_id=f"b{number}")
    assert load_history(path)["x"].values.tolist() == [1.0, 2.0, 2.0, 2.0]
    assert sorted(os.listdir("b")) == ["link.zarr"]


def test_append_run__puts_a_run_of_other_variables_beside(tmp_path):
    appended(tmp_path / "h.zarr", {"a": {"x": 1.0}, "b": {"y": [1.0]}})
    before = kept(tmp_path / "h.zarr")
    for run in ({"x": "text"}, {"x": [1.0]}, {"y": 2.0}):
        with pytest.raises(InputError, match=r"was .* in earlier runs.*put into .*h.zarr.c.zarr"):
            append_run(tmp_path / "h.zarr", a_run(**run), run_id="c")
        assert_holds(tmp_path / "h.zarr.c.zarr", {"c": run})
        shutil.rmtree(tmp_path / "h.zarr.c.zarr")
    assert kept(tmp_path / "h.zarr") == before


def test_append_run__leaves_alone_what_others_wrote(tmp_path):
    save_dataset(xr.Dataset({"x": 1.0}), tmp_path / "store.zarr", kind="thing")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("all my work")
    (tmp_path / "file").write_text("more of it")
    for name in ("store.zarr", "folder", "file"):
        before = kept(tmp_path / name) or (tmp_path / name).read_text()
        with pytest.raises(StoreError, match=rf"left alone.*put into .*{name}.a.zarr"):
            append_run(tmp_path / name, a_run(x=1.0), run_id="a")
        assert (kept(tmp_path / name) or (tmp_path / name).read_text()) == before
        assert_holds(tmp_path / f"{name}.a.zarr", {"a": {"x": 1.0}})


def test_history__is_not_taken_for_a_result(tmp_path):
    appended(tmp_path / "h.zarr", {"a": {"x": 1.0}})
    assert not is_store(tmp_path / "h.zarr")
    with pytest.raises(InputError, match="was not written by bigkd"):
        save_dataset(xr.Dataset({"x": 1.0}), tmp_path / "h.zarr", kind="thing", overwrite=True)
    assert_holds(tmp_path / "h.zarr", {"a": {"x": 1.0}})


def test_load_history__says_what_is_not_there(tmp_path):
    with pytest.raises(StoreError, match="holds no history"):
        load_history(tmp_path / "h.zarr")


def test_load_history__of_one_that_grows_meanwhile_is_whole(tmp_path, monkeypatch):
    path, look, grown = tmp_path / "h.zarr", history._wrong_own_documents, []
    appended(path, {"a": {"x": 1.0}})

    def after_others(*args):
        if len(grown) < 2:
            grown.append(f"later-{len(grown)}")
            appended(path, {grown[-1]: {"x": 2.0, "new": [1.0] * 5}, f"{grown[-1]}-too": {}})
        return look(*args)

    monkeypatch.setattr(history, "_wrong_own_documents", after_others)
    assert load_history(path)["x"].values.tolist() == [1.0]
    assert load_history(path).sizes["run"] == 5


def flip(content):
    return [
        bytes([*content[:at], content[at] ^ (1 << at % 8), *content[at + 1 :]])
        for at in np.linspace(0, len(content) - 1, 4).astype(int)
    ]


def test_load_history__notices_every_damaged_file(tmp_path):
    path = tmp_path / "h.zarr"
    appended(path)
    for key, content in kept(path).items():
        for harmed in (*flip(content), content[:-3], b"", None):
            (path / key).unlink() if harmed is None else (path / key).write_bytes(harmed)
            problem = "no history" if harmed is None else "damaged|not a history"
            with pytest.raises(StoreError, match=problem if key == "zarr.json" else re.escape(key)):
                load_history(path)
        (path / key).write_bytes(content)
    assert_holds(path, RUNS)


def test_load_history__notices_chunks_from_elsewhere(tmp_path):
    """Whole ones, as a backup may bring them back: of before, of another row, of all variables."""
    path = tmp_path / "h.zarr"
    appended(path, dict(list(RUNS.items())[:7]))
    shutil.copytree(path, tmp_path / "before")
    appended(path, {"h": RUNS["h"]})
    after = kept(path)
    shutil.copy(path / "d.mmd" / "c" / "0", path / "d.mmd" / "c" / "1")
    with pytest.raises(StoreError, match=r"runs 3 \(d\), 4 \(e\), 5 \(f\) do not match"):
        load_history(path)
    (path / "d.mmd" / "c" / "1").write_bytes(after["d.mmd/c/1"])
    for name in {key.split("/")[0] for key in after} - {"zarr.json"}:
        shutil.rmtree(path / name)
        shutil.copytree(tmp_path / "before" / name, path / name)
    with pytest.raises(StoreError, match="runs 7"):
        load_history(path)


def test_load_history__notices_rows_of_another_history_before_its_own(tmp_path):
    """Whole ones with their digests: the digest after them is of what was there."""
    path, other = tmp_path / "h.zarr", tmp_path / "other.zarr"
    for place, x in ((path, 1.0), (other, 2.0)):
        appended(place, {name: {"x": x} for name in "abcde"})
    for name in ("x", "run_digest"):
        shutil.copy(other / name / "c" / "0", path / name / "c" / "0")
    with pytest.raises(StoreError, match=r"runs 3 \(d\) do not match"):
        load_history(path)


@pytest.mark.parametrize("key", ["zarr.json", "d.mmd/c/2", "run_id/c/0", "run_digest/c/2"])
def test_append_run__to_a_damaged_history_loses_nothing(tmp_path, key):
    path = tmp_path / "h.zarr"
    appended(path)
    content = (path / key).read_bytes()
    (path / key).write_bytes(flip(content)[2])
    before = kept(path)
    with pytest.raises(StoreError, match=r"damaged.*left as it is.*put into .*h.zarr.i.zarr"):
        append_run(path, a_run(x=1.0), run_id="i")
    assert kept(path) == before
    assert_holds(tmp_path / "h.zarr.i.zarr", {"i": {"x": 1.0}})
    (path / key).write_bytes(content)
    assert append_run(path, a_run(x=1.0), run_id="i")


def test_append_run__to_whole_rows_that_come_from_elsewhere_loses_nothing(tmp_path):
    for name, x in (("h.zarr", 1.0), ("other.zarr", 2.0)):
        appended(tmp_path / name, {"a": {"x": x}})
    path = tmp_path / "h.zarr"
    shutil.copy(tmp_path / "other.zarr" / "x" / "c" / "0", path / "x" / "c" / "0")
    before = kept(path)
    with pytest.raises(StoreError, match=r"runs 0 \(a\) do not match.*put into .*h.zarr.b.zarr"):
        append_run(path, a_run(x=1.0), run_id="b")
    assert kept(path) == before


@pytest.mark.parametrize(("look", "chunks_are_written"), [(1, False), (2, True)])
def test_append_run__looks_for_its_lock_before_it_writes(
    tmp_path, monkeypatch, look, chunks_are_written
):
    path, looks = tmp_path / "h.zarr", []
    appended(path, {"a": {"x": 1.0}})
    before = kept(path)

    def lost(self):
        looks.append(True)
        if len(looks) == look:
            raise LockedError("taken over")

    monkeypatch.setattr("bigkd.io.locks.Lock.require", lost)
    with pytest.raises(LockedError, match="taken over"):
        append_run(path, a_run(x=2.0), run_id="b")
    assert (kept(path)["x/c/0"] != before["x/c/0"]) == chunks_are_written
    assert kept(path)["zarr.json"] == before["zarr.json"]
    assert load_history(path)["x"].values.tolist() == [1.0]


def test_append_run__mends_metadata_that_the_root_knows_better(tmp_path):
    appended(tmp_path / "h.zarr")
    whole = kept(tmp_path)
    (tmp_path / "h.zarr" / "job" / "zarr.json").write_text("{}")
    (tmp_path / "h.zarr" / "late" / "zarr.json").unlink()
    assert not append_run(tmp_path / "h.zarr", a_run(), run_id="a")
    assert kept(tmp_path) == whole


def forged(path, change):
    """Change the root as somebody would who can make checksums."""
    root = json.loads((path / "zarr.json").read_bytes())
    change(root)
    root["attributes"]["bigkd_history"]["checksum"] = history_layout._checksum(root)
    (path / "zarr.json").write_text(json.dumps(root))


def arrays(root):
    return root["consolidated_metadata"]["metadata"]


FORGERIES = {
    "path": lambda root: arrays(root).update({"../../secret": arrays(root)["x"]}),
    "codec": lambda root: arrays(root)["x"]["codecs"].append({"name": "pickle"}),
    "type": lambda root: arrays(root)["x"].update(data_type="object"),
    "shape": lambda root: arrays(root)["x"].update(shape=[10**15]),
    "names": lambda root: root["attributes"]["bigkd_history"].update(before=[]),
    "huge": lambda root: [one.update(shape=[10**15]) for one in arrays(root).values()],
    "format": lambda root: root["attributes"]["bigkd_history"].update(format=2),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_load_history__reads_only_what_it_writes(tmp_path, forgery):
    path = tmp_path / "h.zarr"
    appended(path, {"a": {"x": 1.0}})
    forged(path, FORGERIES[forgery])
    for read in (load_history, lambda path: append_run(path, a_run(x=1.0), run_id="b")):
        with pytest.raises(StoreError, match=r"damaged|format 2|are free"):
            read(path)
