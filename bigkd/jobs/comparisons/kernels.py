"""Kernels of distances and coresets: any, with a length that may be found by a rule."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator

from bigkd.distance.collections import open_collection
from bigkd.distance.question import choose_kernel
from bigkd.finc import ScaledRule
from bigkd.jobs.kernels import GaussianPart, KernelField, KernelPart, LengthPart
from bigkd.kernels import Gaussian, Kernel


def _for_distances(part: KernelPart) -> KernelPart:
    if isinstance(part, LengthPart) and part.bandwidth == "auto":
        raise ValueError(
            "has the rule 'auto', which finds a length for modes; give a length, or 'median'"
        )
    return part


DistanceKernelField: TypeAlias = Annotated[KernelField, AfterValidator(_for_distances)]
"""Any kernel; its length may be a multiple of the median distance."""

MEDIAN = GaussianPart(name="gaussian", bandwidth="median")


def chosen_kernel(
    part: KernelPart, collections: Mapping[str, Any], *, seed: int
) -> tuple[Kernel, dict[str, Any]]:
    """The kernel that `part` asks for, and attributes that tell what it was chosen from.

    The median distance is that of `bigkd.distance.kernel_distance`: in a sample of all
    `collections` together.
    """
    wanted = part.build()
    if isinstance(wanted, Kernel):
        return wanted, {}
    sources = [open_collection(data, {}, name=name) for name, data in collections.items()]
    found, about = choose_kernel("median", sources, seed=seed)
    if not isinstance(wanted, ScaledRule):
        return found, about
    length = wanted.factor * float(found.parameters[Gaussian.length_name])
    return wanted.shape.with_length(length), {**about, "bandwidth_factor": wanted.factor}
