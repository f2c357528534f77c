"""Random damage, small by default; BIGKD_FUZZ=2000 in the environment tries so many of each."""

import copy
import json
import os
import shutil

from hypothesis import settings

VALUES = [
    None, True, -1, 0, 1, 7, 10**18, -(10**18), 1.5, "", "x", "../x", "\0", "a" * 300, "float64",
    "string", "|O", "bytes", "pickle", [], [1], ["x"], {}, {"name": "zstd"}, {"name": "x"},
    {"name": "regular", "configuration": {"chunk_shape": [10**12]}},
]  # fmt: skip


def examples(number):
    """So many of them, unless the environment says otherwise."""
    return settings(max_examples=int(os.environ.get("BIGKD_FUZZ", number)))


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def damage(folder, other, random):
    """One random change of a file in `folder`; `other` is a folder of files of the same names."""
    files = files_below(folder)
    if files:
        random.choice(DAMAGES)(random.choice(files), folder, other, random)


def _flip(path, folder, other, random):
    content = bytearray(path.read_bytes())
    if content:
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        path.write_bytes(content)


def _cut(path, folder, other, random):
    content = path.read_bytes()
    path.write_bytes(content[: random.randrange(len(content) + 1)])


def _append(path, folder, other, random):
    path.write_bytes(path.read_bytes() + random.randbytes(random.randrange(1, 20)))


def _overwrite(path, folder, other, random):
    path.write_bytes(random.randbytes(random.randrange(40)))


def _delete(path, folder, other, random):
    path.unlink()


def _delete_folder(path, folder, other, random):
    if path.parent != folder:
        shutil.rmtree(path.parent)


def _become_folder(path, folder, other, random):
    path.unlink()
    path.mkdir()


def _from_elsewhere(path, folder, other, random):
    same = other / path.relative_to(folder)
    if same.is_file():
        shutil.copyfile(same, path)


def _from_another(path, folder, other, random):
    shutil.copyfile(random.choice(files_below(other)), path)


def _edit(path, folder, other, random):
    documents = [file for file in files_below(folder) if file.name == "zarr.json"]
    if documents:
        path = random.choice(documents)
        try:
            document = json.loads(path.read_bytes())
        except ValueError:
            return
        path.write_text(json.dumps(changed(document, random)))


def changed(document, random):
    """`document` with one value in it changed, added or left out."""
    places = list(_places(document))
    if not places:
        return copy.deepcopy(random.choice(VALUES))
    parent, key = random.choice(places)
    action = random.randrange(4)
    if action == 0:
        del parent[key]
    elif action == 1 and isinstance(parent, dict):
        parent[random.choice(["x", "../x", "codecs", "kind", "shape", "bigkd_manifest"])] = (
            copy.deepcopy(random.choice(VALUES))
        )
    else:
        parent[key] = copy.deepcopy(random.choice(VALUES))
    return document


def _places(document):
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(inside):
        yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)


DAMAGES = [
    _flip, _flip, _cut, _append, _overwrite, _delete, _delete_folder, _become_folder,
    _from_elsewhere, _from_elsewhere, _from_another, _edit, _edit, _edit,
]  # fmt: skip
