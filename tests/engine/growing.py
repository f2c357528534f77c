"""Stores that grow between passes that keep their states."""

import zarr

from bigkd.engine.ledger import open_ledger
from bigkd.io import open_rows
from tests.engine.helpers import everything, reduce


def as_zarr(rows, path, chunk=10):
    return zarr.create_array(str(path), data=rows, chunks=(chunk, 3))


def append(path, rows):
    zarr.open_array(str(path), mode="a").append(rows)


def kept_pass(path, folder, *, summary=None, block_rows=10):
    """State of all rows, rows read and rows reused."""
    with open_ledger() as ledger:
        source = open_rows(path, name="x", block_rows=block_rows)
        found = reduce(summary or everything(3), source, checkpoint=folder)
    return found, ledger.rows_read, ledger.rows_reused


def fresh(path, **options):
    return reduce(everything(3), open_rows(path, name="x", block_rows=10, **options))
