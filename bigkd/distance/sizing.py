"""How many random frequencies an error needs."""

import math
from typing import Any

import numpy as np

from bigkd.distance.question import Question
from bigkd.distance.setting import Setting, bounding_box
from bigkd.errors import InputError
from bigkd.kernels.promises import (
    frequencies_for_domain,
    frequencies_for_points,
    frequencies_for_value,
    value_promise,
)

_STREAM = 0x64697374  # keeps these numbers apart from other uses of a seed
MOST_FREQUENCIES = 2_000_000
_LEAST_EPS = 1e-6  # what no number of frequencies within the limit can promise


def count_frequencies(setting: Setting) -> tuple[int, dict[str, Any]]:
    """Number of frequencies that `eps` and `delta` need, and how it was found.

    Raises
    ------
    InputError
        If the kernel has no random features, or they would be more than two million.
    """
    question = setting.question
    if not setting.kernel.has_spectrum:
        raise InputError(
            f"method='rff' needs a kernel with random Fourier features; got {setting.kernel}. Pass "
            f"method='exact'."
        )
    if question.n_frequencies is not None:
        _refuse_many(int(question.n_frequencies), question)
        return int(question.n_frequencies), {"sizing": "given"}
    if question.eps < _LEAST_EPS:
        _refuse_many(math.inf, question)
    count = {
        "pilot": _by_pilot,
        "value": _by_value,
        "points": _by_points,
        "domain": _by_domain,
    }[question.sizing](setting)
    _refuse_many(count, question)
    return max(count, 2), {"sizing": question.sizing}


def _refuse_many(count: float, question: Question) -> None:
    if count > MOST_FREQUENCIES:
        given = question.n_frequencies is not None
        need = f"n_frequencies={count}" if given else f"eps={question.eps:g}"
        raise InputError(
            f"{need} is more than a pass should take: {count:g} random frequencies "
            f"(sizing={question.sizing!r}), where the limit is {MOST_FREQUENCIES}. Pass a larger "
            f"eps, fewer n_frequencies, or another method."
        )


def _by_value(setting: Setting) -> int:
    return frequencies_for_value(setting.question.eps, setting.question.delta)


def _by_points(setting: Setting) -> int:
    n = sum(source.n_rows for source in setting.sources)
    return frequencies_for_points(setting.question.eps / 4, setting.question.delta, n)


def _by_domain(setting: Setting) -> int:
    moment = setting.kernel.spectral_moment(setting.width)
    if not math.isfinite(moment):
        raise InputError(
            f"sizing='domain' needs a kernel whose frequencies have a second moment; got "
            f"{setting.kernel}. Pass sizing='value'."
        )
    lower, upper = bounding_box(setting.measured())
    return frequencies_for_domain(
        setting.question.eps / 4,
        setting.question.delta,
        setting.width,
        float(np.linalg.norm(upper - lower)) or moment**-0.5,  # all rows may be equal
        second_moment=moment,
    )


def _by_pilot(setting: Setting) -> int:
    """Frequencies after which the promise should be `eps`, judged by a few on a sample of rows.

    The values at the pilot's frequencies are repeated, as if the others were like them. They play
    no part in the estimate, so that its promise holds whatever they were.
    """
    question = setting.question
    values = setting.pilot
    most = _by_value(setting)
    candidates = [int(count) for count in np.geomspace(200, max(most, 201), 40)]
    for count in candidates[:-1]:
        like = np.resize(values, min(count, 20 * setting.pilot.size))
        eps = value_promise(like, 4.0, question.delta).eps
        if eps * (like.size / count) ** 0.5 <= 0.8 * question.eps:
            return count
    return candidates[-1]
