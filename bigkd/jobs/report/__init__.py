"""Reports: every run of a job and its latest results, on one page that needs nothing else."""

from bigkd.jobs.report.canvas import require_drawing
from bigkd.jobs.report.page import write_report
from bigkd.jobs.report.pictures import pictures_of
from bigkd.jobs.report.reading import Account, Outcome, Reading, Run, read_history
from bigkd.jobs.report.verdicts import banner, state, word

__all__ = [
    "Account",
    "Outcome",
    "Reading",
    "Run",
    "banner",
    "pictures_of",
    "read_history",
    "require_drawing",
    "state",
    "word",
    "write_report",
]
