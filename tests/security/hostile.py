"""Stores made by somebody who means harm, and whose checksums are all right."""

import hashlib
import json

import numpy as np
import xarray as xr

from bigkd.io import save_dataset
from bigkd.io.history_layout import HISTORY, _checksum
from bigkd.io.manifests import MANIFEST, _document_checksum

KIND = "thing"


def small():
    return xr.Dataset(
        {"x": ("r", np.arange(300.0)), "t": ("r", ["ab"] * 300)}, attrs={"setting": 1.5}
    )


def stored(path):
    save_dataset(small(), path, kind=KIND)
    return path


def edit(path, change):
    """Change the JSON in a file."""
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def sign_history(path):
    """Make the checksum of a history's root that of what lies there."""

    def signed(document):
        document["attributes"][HISTORY]["checksum"] = _checksum(document)

    edit(path / "zarr.json", signed)


def sign(path, change=lambda manifest: None):
    """Make all checksums of metadata those of what lies there, and change the manifest."""

    def signed(document):
        manifest = document["attributes"][MANIFEST]
        change(manifest)
        for name in manifest["metadata"]:
            file = path / name / "zarr.json"
            if file.exists():
                manifest["metadata"][name] = hashlib.sha256(file.read_bytes()).hexdigest()
        manifest["checksum"] = _document_checksum(document)

    edit(path / "zarr.json", signed)
    return path
