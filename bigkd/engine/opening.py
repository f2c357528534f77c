"""How every call begins: with a session that runs, or one that plans."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from bigkd.engine.progress import reporter
from bigkd.engine.rehearsal import Rehearsal
from bigkd.engine.rehearsed import RehearsedSession
from bigkd.engine.schedulers import open_runner
from bigkd.engine.session import Session, Settings


@contextmanager
def open_session(settings: Settings) -> Iterator[Session]:
    """A session on the runner that `settings` ask for."""
    if isinstance(settings.scheduler, Rehearsal):
        with tempfile.TemporaryDirectory(prefix="bigkd-") as folder:
            yield RehearsedSession(
                settings=settings,
                runner=settings.scheduler,
                stage=settings.scheduler,
                show=reporter(None),
                folder=folder,
            )
        return
    with open_runner(settings.scheduler, stall_seconds=settings.stall_seconds) as runner:
        show = reporter(settings.progress)
        try:
            yield Session(settings=settings, runner=runner, show=show)
        finally:
            show.close()
