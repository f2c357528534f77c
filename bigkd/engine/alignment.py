"""Arrays that came over the network, put where BLAS reads them as it reads any others.

Dask hands out arrays as views into the message they came in, at any odd address. NumPy copies what
is not aligned before it multiplies, and so does not see that ``x.T @ x`` is symmetric: a general
product, of twice the time and other bits.
"""

import dataclasses
from typing import Any

import numpy as np


def aligned(value: Any) -> Any:
    """`value` with every unaligned NumPy array in it copied; itself where there is none.

    Looks into tuples and dataclasses, which is what states, specs and sources are made of.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy(order="A")
    if isinstance(value, tuple):
        parts = [aligned(part) for part in value]
        if all(one is other for one, other in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: part
            for field in dataclasses.fields(value)
            if (part := aligned(own := getattr(value, field.name))) is not own
        }
        return dataclasses.replace(value, **changed) if changed else value
    return value
