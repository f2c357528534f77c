"""A run with several comparisons, as programs read it."""

from typing import Any

import numpy as np

from bigkd.cli.shown import record_of
from bigkd.jobs import ComparisonRecord, RunRecord


def run_record(record: RunRecord) -> dict[str, Any]:
    """Everything that a run found."""
    return {
        "run_id": record.run_id,
        "time": f"{np.datetime_as_string(record.time, unit='s')}Z",
        "seconds": record.seconds,
        "bigkd_version": record.version,
        "exit_code": record.exit_code,
        "verdict": record.verdict,
        "trouble": record.trouble,
        "comparisons": {made.name: _comparison(made) for made in record.comparisons},
    }


def _comparison(made: ComparisonRecord) -> dict[str, Any]:
    return {
        "kind": made.kind,
        "verdict": made.verdict,
        "message": made.message,
        "judgements": [judged._asdict() for judged in made.judgements],
        "store": made.store,
        "sheet": None if made.sheet is None else str(made.sheet),
        "rows_read": made.rows_read,
        "rows_reused": made.rows_reused,
        "seconds": made.seconds,
        "result": None if made.result is None else record_of(made.result, made.kind),
    }
