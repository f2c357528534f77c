"""What a method finds of three kernel sums, and what follows for distances."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from bigkd.distance.collections import Measured
from bigkd.kernels.promises import standard_error, value_promise

Vector: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Kind: TypeAlias = Literal["rounding", "deterministic", "probabilistic"]


class Answer(NamedTuple):
    """A number, where the true one lies, and how far estimates scatter."""

    value: float
    lower: float
    upper: float
    standard_error: float

    @property
    def promise(self) -> float:
        """How far the true number is at most."""
        return max(self.upper - self.value, self.value - self.lower)


@dataclass(frozen=True, kw_only=True)
class Kappas:
    """Kernel sums of two collections, of scaled weights.

    Attributes
    ----------
    xx, yy, xy
        The sums, shape ``(r,)``: one value for each random frequency, whose mean is the estimate;
        one value of methods without random frequencies.
    difference
        ``xx + yy - 2 xy``, computed without cancellation where that is possible.
    error
        Bound of the error of each sum, in units of the product of both norms.
    slack
        Bound of the distance of the embedding of each collection from the one that was used.
    surplus
        By how much xx and yy of what was used are larger on average than those of the collections.
    kind
        What the bounds are: of rounding only, certain, or broken with probability `delta`.
    attrs
        How it was done.
    """

    xx: Vector
    yy: Vector
    xy: Vector
    difference: Vector
    error: float = 0.0
    slack: tuple[float, float] = (0.0, 0.0)
    surplus: tuple[float, float] = (0.0, 0.0)
    kind: Kind
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_sampled(self) -> bool:
        """Whether the values are those of random frequencies."""
        return bool(self.difference.size > 1)

    def squared_distance(self, x: Measured, y: Measured, *, delta: float) -> Answer:
        """``D^2`` of the collections."""
        value = float(np.mean(self.difference))
        if self.is_sampled:
            upper = (x.norm + y.norm) ** 2
            found = value_promise(np.minimum(self.difference, upper), upper, delta)
            return Answer(value, found.lower, found.upper, standard_error(self.difference))
        reach = self.error * (x.norm + y.norm) ** 2
        low, high = value - reach, value + reach
        slack = sum(self.slack)
        if slack:
            low = max(0.0, math.sqrt(max(low, 0.0)) - slack) ** 2
            high = (math.sqrt(max(high, 0.0)) + slack) ** 2
        return Answer(value, low, high, math.nan)

    def unbiased(self, x: Measured, y: Measured, *, delta: float) -> Answer:
        """The U-statistic: sums without the diagonal, over pairs of different rows."""
        shares = [1.0 / (1.0 - one.squares) for one in (x, y)]
        own = (self.xx - self.surplus[0] - x.diagonal, self.yy - self.surplus[1] - y.diagonal)
        values = shares[0] * own[0] + shares[1] * own[1] - 2.0 * self.xy
        value = float(np.mean(values))
        if self.is_sampled:
            least = -shares[0] * x.diagonal - shares[1] * y.diagonal - 2.0 * x.norm * y.norm
            most = sum(
                s * (one.norm**2 - one.diagonal) for s, one in zip(shares, (x, y), strict=True)
            )
            width = most + 2.0 * x.norm * y.norm - least
            found = value_promise(np.clip(values - least, 0.0, width), width, delta)
            return Answer(value, found.lower + least, found.upper + least, standard_error(values))
        one, other = self.slack
        reach = shares[0] * (self.error * x.norm**2 + one * (2 * x.norm + one))
        reach += shares[1] * (self.error * y.norm**2 + other * (2 * y.norm + other))
        reach += sum(s * abs(more) for s, more in zip(shares, self.surplus, strict=True))
        cross = one * y.norm + other * x.norm + one * other
        reach += 2.0 * (self.error * x.norm * y.norm + cross)
        return Answer(value, value - reach, value + reach, math.nan)


def single(xx: float, yy: float, xy: float, **about: Any) -> Kappas:
    """Sums without random frequencies."""
    values = [np.asarray([value], dtype=np.float64) for value in (xx, yy, xy)]
    difference = about.pop("difference", xx + yy - 2.0 * xy)
    return Kappas(
        xx=values[0],
        yy=values[1],
        xy=values[2],
        difference=np.asarray([difference], dtype=np.float64),
        **about,
    )
