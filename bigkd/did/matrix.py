"""`matrix`: the dissimilarities of all pairs of a collection, or of two."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import xarray as xr

from bigkd.did.choice import DidOptions, Scale, Strength, split_options, strength_of
from bigkd.did.layout import Opened, open_data
from bigkd.did.pairs import PairMeasure, StoredMaps, StoredPairs
from bigkd.did.setting import Setting, choose, settings_with
from bigkd.engine import open_session
from bigkd.errors import InputError
from bigkd.io import open_rows, open_tiled
from bigkd.io.datasets import refuse_existing
from bigkd.schema import DISSIMILARITIES, dataset

KIND = "dissimilarities"

_NAMES = ("collection", "other")
_DIMS = ("lam", "reference", "searched")


def matrix(
    collection: Any,
    other: Any = None,
    *,
    lam: Any = 1e-2,
    relative: bool = False,
    scale: Scale = "paper",
    output: str | Path | None = None,
    overwrite: bool = False,
    **options: Unpack[DidOptions],
) -> xr.Dataset:
    """Dissimilarity of every datum from every reference. Computes.

    Parameters
    ----------
    collection
        References f, masked: data in any form that rows come in (`bigkd.io.open_rows`), or an
        `xarray.DataArray` ``(sample, y, x, channel)``, ``(sample, time, variable)``, or of any
        grid.
    other
        Data g to be searched; `collection` itself by default.
    lam, relative, scale
        As for `dissimilarity`; several lambdas share the maps and most of each pair.
    output
        Zarr store for the result, which then may be larger than memory: a folder or a URL. A call
        that was interrupted goes on from the tiles that are finished.
    overwrite
        Replace an earlier result at `output`.
    **options
        How data are represented (`bigkd.did.Representation`), read, and passes run
        (`bigkd.engine.Options`). Until the result is whole the maps are kept in the folder
        `checkpoint`, else beside `output`. A cluster that is not of this machine needs one of them.

    Returns
    -------
    xarray.Dataset
        ``dissimilarity`` over ``lam``, ``reference`` and ``searched``, with the labels of the data:
        in memory, or in tiles of the store at `output` (Dask arrays). Not symmetric. NaN where a
        datum has no position that counts.

    Raises
    ------
    BigkdError
        As `dissimilarity`.
    MemoryPlanError, ClusterError
        As every function with passes.

    Notes
    -----
    Each datum is mapped once, to ``16 M_X (M_Y + 1)`` bytes on disk (820 kB by default), and each
    pair is a problem of at most M_X unknowns. Memory does not grow with the number of data.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import did
    >>> t = np.linspace(0, 1, 30)
    >>> waves = np.stack([np.sin(speed * t) for speed in range(1, 4)])
    >>> did.matrix(waves, dims=("time",))["dissimilarity"].sizes["searched"]
    3
    """
    choice, others = split_options(options)
    how: dict[str, Any] = {"dims": choice.dims, "value_dim": choice.value_dim}
    opened = [open_data(collection, others, name=_NAMES[0], **how)]
    if other is not None:
        opened.append(open_data(other, others, name=_NAMES[1], like=opened[0].layout, **how))
    strength = strength_of(lam, relative=relative, scale=scale, n_points=opened[0].layout.n_points)
    if output is not None:
        refuse_existing(str(output), overwrite=overwrite)
    with open_session(settings_with(others, choice)) as session:
        setting = choose(opened, _NAMES[: len(opened)], choice)
        beside = _beside(opened, setting, strength)
        content = (setting.maps, strength, *(one.source.identity() for one in opened))
        with session.scratch(*content, beside=output) as scratch:
            stored = [
                session.store_rows(
                    StoredMaps(maps=setting.maps),
                    one.source,
                    f"{scratch}/maps-{at}.zarr",
                    label=f"mapping {one.source.name}",
                )
                for at, one in enumerate(opened)
            ]
            mapped = [open_rows(one.data_path, name="maps") for one in stored]
            array = session.store_pairs(
                StoredPairs(
                    shape=setting.maps.shape, measure=PairMeasure.of(strength, setting.maps)
                ),
                mapped[0],
                mapped[-1],
                str(output or f"{scratch}/pairs.zarr"),
                label="comparing pairs",
                name="dissimilarity",
                dims=_DIMS,
                made_from=(stored[0].token, stored[-1].token),
                overwrite=overwrite,
            )
            meaning = DISSIMILARITIES["dissimilarity"]
            about = {"long_name": meaning.long_name, "units": meaning.units}
            array.finish(beside, kind=KIND, attrs=about)
            found = open_tiled(array.path, kind=KIND)
            return found.load() if output is None else found


def _beside(opened: Sequence[Opened], setting: Setting, strength: Strength) -> xr.Dataset:
    """What stands beside the values: labels, and every choice."""
    coords = {"lam": list(strength.lams)}
    for dim, one in zip(_DIMS[1:], (opened[0], opened[-1]), strict=True):
        if one.names is not None:
            coords[dim] = _storable(one.names, one.source.name)
    return dataset(DISSIMILARITIES, {}, attrs={**setting.attrs, **strength.attrs}, coords=coords)


def _storable(labels: Any, name: str) -> Any:
    """Labels of data, checked before the long work: stores hold numbers, times and text."""
    if labels.dtype.kind == "O" and not all(isinstance(label, str) for label in labels.tolist()):
        raise InputError(
            f"the labels of {name} are of type {type(labels[0]).__name__}, which cannot be stored; "
            f"expected numbers, times or text. Pass {name}.drop_vars(...) of them, or text."
        )
    return labels
