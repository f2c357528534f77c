"""How every question begins: collections opened, a kernel chosen, a session begun."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from bigkd.distance.collections import open_collection, require_comparable
from bigkd.distance.question import KernelChoice, Question, choose_kernel
from bigkd.distance.setting import Setting
from bigkd.engine import open_session, settings_of


class Given(NamedTuple):
    """A collection as the user passes it."""

    data: Any
    weights: Any = None
    vectors: Any = None


class Opened(NamedTuple):
    """A setting, and how its kernel was chosen."""

    setting: Setting
    about: dict[str, Any]


@contextmanager
def opened(
    collections: Mapping[str, Given],
    kernel: KernelChoice,
    question: Question,
    options: Mapping[str, Any],
) -> Iterator[Opened]:
    """Everything that can be checked before rows are read is checked here."""
    settings = settings_of(options)
    sources = [
        open_collection(
            given.data, options, name=name, weights=given.weights, vectors=given.vectors
        )
        for name, given in collections.items()
    ]
    n_vectors = require_comparable(sources)
    chosen, about = choose_kernel(kernel, sources, seed=question.seed)
    with open_session(settings) as session:
        setting = Setting(
            session=session,
            sources=sources,
            kernel=chosen,
            question=question,
            n_vectors=n_vectors,
        )
        yield Opened(setting, about)
