"""The same call has the same bits on any scheduler, and after an interruption in the middle."""

import dask.array as da
import pytest
import zarr

from bigkd import mmdpca
from bigkd.engine import stripes, tiles
from tests.mmdpca import samples

SHAPES = {"gram": (24, 400), "pairs": (200, 20), "nystrom": (200, 20), "features": (200, 20)}
WAYS = {
    **{method: {"method": method} for method in SHAPES},
    "moments": {"method": "moments", "kernel": "kurtosis"},
    "centred": {"method": "nystrom", "center": True, "kernel": "laplace"},
}


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Every block is a task of its own, so that small data make many tasks."""
    monkeypatch.setattr(stripes, "STRIPE_WORK", 1)
    monkeypatch.setattr(tiles, "TILE_WORK", 1)


def rows_of(way):
    x = samples.decaying(*SHAPES.get(way, (200, 20))).astype("f4")
    return x, {"k": 3, "block_rows": 25, **WAYS[way]}


def interrupt(after):
    """What the user's Ctrl-C does once `after` tasks are done."""
    seen = []

    def watch(event):
        seen.append(event)
        if len(seen) == after:
            raise KeyboardInterrupt

    return watch


@pytest.mark.parametrize("way", WAYS)
def test_fit__has_the_same_bits_on_threads_and_from_stores(way, tmp_path):
    x, asked = rows_of(way)
    first = mmdpca.fit(x, **asked, scheduler="sync")
    assert mmdpca.fit(x, **asked, scheduler="threads").identical(first)
    assert mmdpca.fit(x, **asked, scheduler="threads", memory_limit="1 GiB").identical(first)
    if way == "gram":  # whose blocks are of columns, and the store's own
        zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(8, 50))
        first = mmdpca.fit(str(tmp_path / "x.zarr"), **asked, scheduler="sync")
        again = mmdpca.fit(str(tmp_path / "x.zarr"), **asked, scheduler="threads")
        assert again.identical(first)
        return
    chunks = (25, x.shape[1])
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=chunks)
    given = str(tmp_path / "x.zarr"), da.from_array(x, chunks=chunks)
    for data in given:
        assert mmdpca.fit(data, **asked, scheduler="threads").identical(first)


@pytest.mark.parametrize("way", WAYS)
def test_fit__goes_on_after_an_interruption_to_the_same_bits(way, tmp_path):
    x, asked = rows_of(way)
    events = []
    first = mmdpca.fit(x, **asked, scheduler="sync", progress=events.append)
    total = len(events)
    assert total >= 4
    for at, share in enumerate((0.25, 0.5, 0.8)):
        kept = tmp_path / f"kept {at}"
        with pytest.raises(KeyboardInterrupt):
            mmdpca.fit(
                x, **asked, scheduler="sync", checkpoint=kept,
                progress=interrupt(max(2, int(share * total))),
            )  # fmt: skip
        assert share < 0.8 or list(kept.glob("*/*.zarr"))
        assert mmdpca.fit(x, **asked, scheduler="sync", checkpoint=kept).identical(first)
        assert mmdpca.fit(x, **asked, scheduler="threads", checkpoint=kept).identical(first)
