"""Measure at full size, and print a table for each measure.

    python -m tests.benchmarks.run                    everything, about 20 minutes
    python -m tests.benchmarks.run finc_pass engine   some measures
    python -m tests.benchmarks.run --tiny             what the tests run
    python -m tests.benchmarks.run --here             this environment only

Where the environment forces OpenBLAS's kernel, everything runs a second time, in a process without
those variables. Every ratio is of CPU times taken in turns within one process, BLAS on one thread.
pytest runs the same measures at tiny sizes, without timing anything (``--benchmark-disable``).
"""

import argparse
import math
import os
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from tests.benchmarks.coresets import coreset_accuracy, coreset_passes
from tests.benchmarks.dissimilarities import did_maps, did_matrix
from tests.benchmarks.distances import distances, rff_pass, streams
from tests.benchmarks.jobs import jobs
from tests.benchmarks.kernel_sums import kernel_kinds, kernel_sums
from tests.benchmarks.kernel_values import kernel_values, value_kinds
from tests.benchmarks.measure import BLAS_SETTINGS, FULL, TINY, Line, machine
from tests.benchmarks.nufft import nufft, nufft_accuracy
from tests.benchmarks.passes import engine, finc_pass, naive
from tests.benchmarks.spectra import accuracy, choice, comparisons, ken, lanczos
from tests.benchmarks.subspaces import (
    few_long_rows,
    subspace_passes,
    subspace_streams,
    subspaces,
)

MEASURES = {
    function.__name__: function
    for function in (
        finc_pass, engine, naive, lanczos, ken, choice, comparisons, accuracy,
        nufft, nufft_accuracy, kernel_sums, kernel_kinds, kernel_values, value_kinds,
        distances, streams, rff_pass, coreset_accuracy, coreset_passes,
        did_maps, did_matrix,
        subspaces, subspace_passes, few_long_rows, subspace_streams,
        jobs,
    )
}  # fmt: skip


def table(lines: list[Line]) -> Table:
    """The lines as a table."""
    out = Table("measure", "value", "against", "ratio", "goal")
    for line in lines:
        known = not math.isnan(line.against)
        out.add_row(
            line.name,
            f"{line.value:.3g} {line.unit}",
            f"{line.against:.3g} {line.unit}" if known else "",
            f"{line.ratio:.3f}" if known else "",
            line.goal,
        )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.run")
    parser.add_argument("measures", nargs="*", help=f"of {', '.join(MEASURES)}")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--here", action="store_true")
    options = parser.parse_args()
    unknown = set(options.measures) - set(MEASURES)
    if unknown:
        parser.error(f"no such measure: {', '.join(sorted(unknown))}")
    console = Console(width=None if sys.stdout.isatty() else 110)
    sizes = TINY if options.tiny else FULL
    console.print(machine(), soft_wrap=True)
    for name in options.measures or MEASURES:
        console.print(table(MEASURES[name](sizes)))
    free = {name: value for name, value in os.environ.items() if name not in BLAS_SETTINGS}
    if len(free) < len(os.environ) and not options.here:
        again = [sys.executable, "-m", "tests.benchmarks.run", "--here", *sys.argv[1:]]
        sys.exit(subprocess.run(again, env=free, check=False).returncode)


if __name__ == "__main__":
    main()
