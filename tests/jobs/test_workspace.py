"""Folders of checkpoints."""

import pytest

from bigkd.errors import ClusterError, InputError, LockedError
from bigkd.jobs.workspace import clear, n_segments, require_replaceable, workspace

TOKEN = "0123456789abcdef" * 2


def segment(folder, number=0):
    path = folder / TOKEN / f"{number:05d}.zarr"
    path.mkdir(parents=True)
    return path


def test_workspace__removes_checkpoints_at_the_start_and_at_the_end(tmp_path):
    out = str(tmp_path / "out.zarr")
    folder = tmp_path / "out.zarr.checkpoint"
    segment(folder)
    with workspace(out) as place:
        assert place == (str(folder), 0, set(), [])
        assert not folder.exists()
        assert (tmp_path / "out.zarr.lock").exists()
        segment(folder)
    assert list(tmp_path.iterdir()) == []


def test_workspace__resumes_from_what_is_there(tmp_path):
    segment(tmp_path / "own")
    segment(tmp_path / "own", 1)
    with workspace(None, checkpoint=str(tmp_path / "own"), resume=True) as place:
        assert place.n_found == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ClusterError])
def test_workspace__says_what_is_kept(tmp_path, error):
    out = tmp_path / "out.zarr"
    folder = tmp_path / "out.zarr.checkpoint"

    def work():
        segment(folder)
        raise error

    with pytest.raises(error) as caught, workspace(str(out)):
        work()
    assert n_segments(str(folder)) == 1
    assert caught.value.__notes__ == [
        f"1 finished segment is kept in {out}.checkpoint. Run the same command to go on from "
        f"there: `bigkd run` as it is, others with --resume."
    ]


def test_workspace__has_one_lock_for_every_spelling_of_its_place(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    with workspace("real/out.zarr"):
        for spelling in (
            "link/out.zarr",
            "real/../real/out.zarr/",
            str(tmp_path / "link/out.zarr"),
        ):
            with pytest.raises(LockedError, match=r"real/out.zarr.lock"), workspace(spelling):
                pytest.fail("two runs write one place")


@pytest.mark.parametrize("resume", [False, True])
def test_workspace__leaves_a_link_that_stands_for_its_folder(tmp_path, resume):
    elsewhere, link = tmp_path / "larger disk", tmp_path / "out.zarr.checkpoint"
    elsewhere.mkdir()
    link.symlink_to(elsewhere)
    with workspace(str(tmp_path / "out.zarr"), resume=resume):
        segment(link)
    assert link.is_symlink()
    assert list(elsewhere.iterdir()) == []


def test_workspace__leaves_alone_what_it_did_not_make(tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("dear")
    (tmp_path / "deadbeef").mkdir()
    segment(tmp_path)
    clear(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt", "deadbeef"}


def test_workspace__removes_what_killed_runs_left_beside_its_result(tmp_path):
    for name in (".out[1].zarr.0123abcd.partial", f".out[1].zarr.scratch/{TOKEN}/0.zarr"):
        (tmp_path / name).mkdir(parents=True)
    others = {".out1.zarr.0123abcd.partial", ".out[1].zarr.0123abcde.partial"}
    for name in others:
        (tmp_path / name).mkdir()
    with workspace(str(tmp_path / "out[1].zarr")):
        assert {path.name for path in tmp_path.iterdir()} == {"out[1].zarr.lock", *others}


def test_workspace__that_keeps_nothing_leaves_no_tiles_after_a_fault(tmp_path):
    tiles = tmp_path / ".out.zarr.partial"

    def work():
        tiles.mkdir()
        (tiles / "zarr.json").write_text('{"attributes": {"bigkd_unfinished": {}}}')
        raise ZeroDivisionError

    out = str(tmp_path / "out.zarr")
    with pytest.raises(ZeroDivisionError), workspace(out, keep_checkpoints=False):
        work()
    assert list(tmp_path.iterdir()) == []


def test_workspace__does_what_comes_afterwards_at_last_and_under_its_lock(tmp_path):
    seen = []
    with workspace(str(tmp_path / "out.zarr")) as place:
        segment(tmp_path / "out.zarr.checkpoint")
        place.afterwards.append(lambda: seen.extend(path.name for path in tmp_path.iterdir()))
    assert seen == ["out.zarr.lock"]


def test_workspace__locks_a_folder_of_checkpoints_of_its_own(tmp_path):
    shared = str(tmp_path / "shared")
    with (
        workspace(str(tmp_path / "a.zarr"), checkpoint=shared),
        pytest.raises(LockedError, match="shared"),
        workspace(str(tmp_path / "b.zarr"), checkpoint=shared),
    ):
        pass


@pytest.mark.parametrize("options", [{"out": None}, {"out": "x", "keep_checkpoints": False}])
def test_workspace__refuses_to_resume_from_nowhere(options):
    with (
        pytest.raises(InputError, match="nothing to resume from"),
        workspace(**options, resume=True),
    ):
        pass


def test_require_replaceable__spares_what_is_no_store_of_ours(tmp_path):
    require_replaceable(str(tmp_path / "new"), overwrite=False)
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(InputError, match="exists already"):
            require_replaceable(str(path), overwrite=False)
        with pytest.raises(InputError, match="not a store of bigkd; it is left alone"):
            require_replaceable(str(path), overwrite=True)
