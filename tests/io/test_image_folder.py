import os
import pickle

import numpy as np
import pytest
import zarr
from PIL import Image

from bigkd import finc
from bigkd.errors import DataError, InputError, ShapeError, StoreError
from bigkd.io import open_rows, read_images
from bigkd.io.image_folder import image_source
from bigkd.kernels import Gaussian

SHAPE = (7, 5, 3)


def noise(seed, shape=SHAPE):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def write(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)


@pytest.fixture
def folder(tmp_path):
    """Five pictures, in the order b/1, b/10, b/2, c, d.PNG, beside files that are none."""
    names = ("b/1.png", "b/10.bmp", "b/2.tif", "c.png", "d.PNG")
    for seed, name in enumerate(names):
        write(tmp_path / "photos" / name, noise(seed))
    (tmp_path / "photos" / "notes.txt").write_text("not a picture")
    (tmp_path / "photos" / "._c.png").write_bytes(b"left by another system")
    write(tmp_path / "photos" / ".cache" / "small.png", noise(9))
    return tmp_path / "photos"


def test_open_rows__reads_a_folder_of_pictures(folder):
    source = open_rows(folder, name="x", block_rows=2)
    expected = np.stack([noise(seed) for seed in range(5)])
    assert source.row_shape == SHAPE
    assert source.dtype == np.uint8
    assert source.bounds == (0, 2, 4, 5)
    assert source.labels == ("b/1.png", "b/10.bmp", "b/2.tif", "c.png", "d.PNG")
    blocks = [source.read(block) for block in range(source.n_blocks)]
    np.testing.assert_array_equal(np.concatenate(blocks), expected.reshape(5, -1))
    np.testing.assert_array_equal(source.take(1, 4), expected[1:4].reshape(3, -1))


def test_open_rows__reads_one_picture(folder):
    source = open_rows(str(folder / "c.png"), name="x")
    assert source.labels == ("c.png",)
    np.testing.assert_array_equal(source.read(0), noise(3).reshape(1, -1))


def test_open_rows__leaves_zarr_stores_and_other_folders_alone(folder, tmp_path):
    zarr.save_array(folder / "store.zarr", np.ones((4, 3)))
    write(folder / "store.zarr" / "preview.png", noise(0))
    assert open_rows(folder / "store.zarr", name="x").row_shape == (3,)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"not a collection of rows; expected .*, or pictures"):
        open_rows(tmp_path / "empty", name="x")


def test_read_images__labels_samples(folder):
    images = read_images(folder)
    assert images.dims == ("sample", "y", "x", "channel")
    np.testing.assert_array_equal(images.sel(sample="d.PNG"), noise(4))
    np.testing.assert_array_equal(read_images(folder / "c.png").values[0], noise(3))


def test_image_source__is_small_and_its_identity_follows_the_files(folder):
    source = open_rows(folder, name="x")
    copy = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(copy.read(0), source.read(0))
    before = source.identity()
    assert before == open_rows(folder, name="y").identity()
    assert open_rows(folder, name="x", image_size=(3, 3)).identity() != before
    os.utime(folder / "c.png", ns=(1, 1))
    after = open_rows(folder, name="x").identity()
    assert after != before
    os.rename(folder / "c.png", folder / "e.png")
    assert open_rows(folder, name="x").identity() not in (before, after)


def test_image_source__makes_every_kind_of_picture_one(tmp_path):
    grey, colours = noise(0, (4, 6)), noise(1, (4, 6, 3))
    opacity = np.full((4, 6, 1), 255, dtype=np.uint8)
    opacity[0, :3] = 0
    opacity[1, 2] = 51
    write(tmp_path / "a.png", grey)
    write(tmp_path / "b.png", np.concatenate([colours, opacity], axis=2))
    palette = Image.fromarray(grey // 64 * 64).quantize(4)
    palette.info["transparency"] = 0
    palette.save(tmp_path / "c.png")
    write(tmp_path / "d.png", grey > 127)
    images = read_images(tmp_path).values
    np.testing.assert_array_equal(images[0], np.repeat(grey[..., None], 3, axis=2))
    blended = colours * (opacity / 255.0) + 255.0 * (1 - opacity / 255.0)
    np.testing.assert_allclose(images[1], blended, atol=1)
    assert (images[2][np.asarray(palette) == 0] == 255).all()
    np.testing.assert_array_equal(images[3][..., 0], np.where(grey > 127, 255, 0))
    one = read_images(tmp_path, mode="L").values
    assert one.shape == (4, 4, 6, 1)
    np.testing.assert_array_equal(one[0, ..., 0], grey)


def test_image_source__heeds_how_the_camera_was_held(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    write(tmp_path / "a.tif", noise(0), exif=exif)
    write(tmp_path / "b.png", noise(0), exif=exif)
    write(tmp_path / "c.png", np.rot90(noise(0), -1))
    images = read_images(tmp_path).values
    assert images.shape == (3, 5, 7, 3)
    for image in images:
        np.testing.assert_array_equal(image, np.rot90(noise(0), -1))


def test_image_source__refuses_sizes_that_differ_and_resamples(folder):
    y, x = np.mgrid[0:1:64j, 0:1:80j]
    smooth = np.round(255 * np.stack([y, x, y * x], axis=-1)).astype(np.uint8)
    write(folder / "c.png", smooth)
    message = r"b/1.png is 7 x 5 and c.png is 64 x 80; .*image_size=\(7, 5\)"
    with pytest.raises(ShapeError, match=message):
        open_rows(folder, name="x")
    images = read_images(folder, image_size=(16, 20)).sel(sample="c.png")
    means = smooth.reshape(16, 4, 20, 4, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(images[1:-1, 1:-1], means[1:-1, 1:-1], atol=1)


def test_image_source__names_a_damaged_file(folder, tmp_path):
    (folder / "c.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"c\.png cannot be read as a picture .*Unidentified"):
        open_rows(folder, name="x")
    large = tmp_path / "large"
    write(large / "a.png", noise(0, (60, 60, 3)))
    write(large / "b.png", noise(1, (60, 60, 3)))
    whole = (large / "b.png").read_bytes()
    source = open_rows(large, name="x")
    (large / "b.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"b\.png cannot be read as a picture"):
        source.read(0)
    (large / "b.png").unlink()
    with pytest.raises(DataError, match=r"b\.png cannot be read .*FileNotFoundError"):
        source.read(0)
    write(large / "b.png", noise(1, (60, 61, 3)))
    with pytest.raises(DataError, match=r"b\.png is 60 x 61 and was 60 x 60 before"):
        source.read(0)


def test_image_source__refuses(folder, tmp_path):
    write(tmp_path / "deep" / "a.png", np.full((3, 3), 4000, dtype=np.uint16))
    with pytest.raises(InputError, match=r"a\.png has pixels of mode 'I;16'; expected 8 bits"):
        open_rows(tmp_path / "deep", name="x")
    with pytest.raises(InputError, match="mode must be 'RGB' or 'L'; got 'CMYK'"):
        read_images(folder, mode="CMYK")
    for size in ((0, 4), (3.5, 4), 64, (1, 2, 3), "ab"):
        with pytest.raises(InputError, match="image_size must be a height and a width"):
            open_rows(folder, name="x", image_size=size)
    with pytest.raises(StoreError, match=r"not a folder with pictures; expected files named \*\.b"):
        image_source(tmp_path / "nowhere", name="x")


def test_image_source__goes_through_a_pass(folder):
    rows = np.stack([noise(seed) for seed in range(5)])
    options = {"kernel": Gaussian(200.0), "n_frequencies": 10, "n_modes": 2, "seed": 0}
    found = finc.modes(folder, rows[:3], **options)
    expected = finc.modes(rows, rows[:3], **options)
    np.testing.assert_array_equal(found["eigenvalue"], expected["eigenvalue"])
