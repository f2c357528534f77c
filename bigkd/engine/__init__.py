"""The only place that builds Dask graphs: map, reduce and pairs over blocks of rows."""

from bigkd.engine.inputs import NonFinite, collect_rows
from bigkd.engine.map import map_rows
from bigkd.engine.memory import Plan
from bigkd.engine.opening import open_session
from bigkd.engine.options import Options, ReadOptions, open_source, settings_of
from bigkd.engine.progress import Event, Reporting
from bigkd.engine.rehearsal import Rehearsal, RehearsalEnded, Rehearsed
from bigkd.engine.schedulers import Scheduler
from bigkd.engine.session import Session, Settings
from bigkd.engine.tasks import Reduced, Tally, limit_blas

__all__ = [
    "Event",
    "NonFinite",
    "Options",
    "Plan",
    "ReadOptions",
    "Reduced",
    "Rehearsal",
    "RehearsalEnded",
    "Rehearsed",
    "Reporting",
    "Scheduler",
    "Session",
    "Settings",
    "Tally",
    "collect_rows",
    "limit_blas",
    "map_rows",
    "open_session",
    "open_source",
    "settings_of",
]
