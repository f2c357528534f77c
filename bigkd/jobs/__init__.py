"""A job file in, a result store out."""

from bigkd.jobs.load import load_job
from bigkd.jobs.run import Outcome, run_job
from bigkd.jobs.schema import Job

__all__ = ["Job", "Outcome", "load_job", "run_job"]
