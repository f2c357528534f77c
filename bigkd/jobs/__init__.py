"""A job file in, result stores out."""

from bigkd.jobs.load import load_job
from bigkd.jobs.records import ComparisonRecord, Judgement, RunRecord
from bigkd.jobs.run import run_job
from bigkd.jobs.schema import Job

__all__ = ["ComparisonRecord", "Job", "Judgement", "RunRecord", "load_job", "run_job"]
