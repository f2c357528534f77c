"""Datasets of distances."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from bigkd.distance.collections import Measured
from bigkd.distance.estimates import Answer, Kappas
from bigkd.distance.setting import Setting
from bigkd.errors import DataError
from bigkd.schema import DISTANCE, UNBIASED, dataset


def distance_dataset(
    setting: Setting, known: Sequence[Measured], kappas: Kappas, about: Mapping[str, Any]
) -> xr.Dataset:
    """What `bigkd.distance.kernel_distance` returns."""
    answer = kappas.squared_distance(known[0], known[1], delta=setting.question.delta)
    return dataset(
        DISTANCE,
        {
            **_distance_of(answer),
            "kappa_xx": np.mean(kappas.xx),
            "kappa_yy": np.mean(kappas.yy),
            "kappa_xy": np.mean(kappas.xy),
        },
        attrs=_attrs(setting, known, kappas, about),
    )


def unbiased_dataset(
    setting: Setting, known: Sequence[Measured], kappas: Kappas, about: Mapping[str, Any]
) -> xr.Dataset:
    """What `bigkd.distance.unbiased_mmd2` returns."""
    answer = kappas.unbiased(known[0], known[1], delta=setting.question.delta)
    return dataset(
        UNBIASED,
        {
            "mmd2": answer.value,
            "mmd2_biased": np.mean(kappas.difference),
            "promise": answer.promise,
            "standard_error": answer.standard_error,
        },
        attrs=_attrs(setting, known, kappas, about),
    )


def kernel_attrs(setting: Setting) -> dict[str, Any]:
    """The kernel, as attributes."""
    kernel = setting.kernel
    return {
        "kernel": kernel.name,
        "kernel_parameters": json.dumps(kernel.parameters),
        "positive_definite": int(kernel.is_positive_definite(setting.width)),
    }


def collection_attrs(names: Sequence[str], known: Sequence[Measured]) -> dict[str, Any]:
    """Sizes of the collections, as attributes."""
    attrs: dict[str, Any] = {}
    for name, about in zip(names, known, strict=True):
        attrs |= {
            f"n_rows_{name}": about.n,
            f"n_dropped_{name}": about.n_dropped,
            f"mass_{name}": about.mass,
        }
    return attrs


def _distance_of(answer: Answer) -> dict[str, Any]:
    if not math.isfinite(answer.value):
        raise DataError(
            f"the squared distance is {answer.value}: kernel values or weights overflow. Divide "
            f"rows and weights by their largest."
        )
    size = abs(answer.value)
    return {
        "distance": math.sqrt(max(answer.value, 0.0)),
        "distance_lower": math.sqrt(max(answer.lower, 0.0)),
        "distance_upper": math.sqrt(max(answer.upper, 0.0)),
        "distance_squared": answer.value,
        "promise": answer.promise,
        "relative_promise": answer.promise / size if size else math.inf,
        "standard_error": answer.standard_error,
        "negative": answer.value < 0,
    }


def _attrs(
    setting: Setting, known: Sequence[Measured], kappas: Kappas, about: Mapping[str, Any]
) -> dict[str, Any]:
    question = setting.question
    return {
        **kappas.attrs,
        **about,
        **kernel_attrs(setting),
        **collection_attrs(("x", "y"), known),
        "W": max(one.total for one in known),
        "promise_kind": kappas.kind,
        "eps": question.eps,
        "delta": question.delta,
        "normalize": int(question.normalize),
        "nonfinite": setting.session.settings.nonfinite,
        "seed": question.seed,
    }
