import math

import background_measures
import numpy as np
import pytest
from background_measures import measures


def scene(shape):
    """A smooth scene, and a noisy one with a dark box and a red bar, whole levels."""
    y, x = np.indices(shape)
    waves = [np.sin(x / (7 + c) + y / 11) * np.cos(y / (5 + c)) for c in range(3)]
    truth = 127.0 + 100.0 * np.stack(waves, axis=-1)
    computed = truth + np.random.default_rng(7).normal(0.0, 12.0, truth.shape)
    computed[40:90, 60:100] = 30.0
    computed[100:150, 20:24, 0] += 60.0
    return np.clip(np.rint(computed), 0, 255), np.clip(np.rint(truth), 0, 255)


def similarity_by_definition(picture, truth, width):
    """Means over windows of luminance times the rest, and of the rest, by loops."""
    at = np.arange(width) - (width - 1) / 2
    taps = np.exp(-(at[:, None] ** 2 + at**2) / (2 * 1.5**2))
    taps /= taps.sum()
    both, structures = [], []
    for top in range(picture.shape[0] - width + 1):
        for left in range(picture.shape[1] - width + 1):
            one, other = (p[top : top + width, left : left + width] for p in (picture, truth))
            means = (taps * one).sum(), (taps * other).sum()
            spread = (taps * (one - means[0]) ** 2).sum() + (taps * (other - means[1]) ** 2).sum()
            shared = (taps * (one - means[0]) * (other - means[1])).sum()
            structure = (2 * shared + 7.65**2) / (spread + 7.65**2)
            luminance = (2 * means[0] * means[1] + 2.55**2) / (
                means[0] ** 2 + means[1] ** 2 + 2.55**2
            )
            both.append(luminance * structure)
            structures.append(structure)
    return np.mean(both), np.mean(structures)


def halved(picture):
    blocks = [
        [picture[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] for j in range(-(-picture.shape[1] // 2))]
        for i in range(-(-picture.shape[0] // 2))
    ]
    return np.array([[block.mean() for block in line] for line in blocks])


# pytorch-msssim 1.0.0 (`ms_ssim` of luma, window 11, sigma 1.5, data_range 255), which has float32
# windows, and scikit-image 0.26.0 (`peak_signal_noise_ratio` of luma, and of Y, U and V).
@pytest.mark.parametrize(
    ("shape", "similarity", "noise", "colours"),
    [
        ((192, 256), 0.8754026768646732, 21.564766918584723, 21.725732711122767),
        ((176, 208), 0.8031641016198809, 20.444137740500263, 20.617250921965027),
    ],
)
def test_measures__are_those_of_libraries(shape, similarity, noise, colours):
    found = measures(*scene(shape))
    assert found.ms_ssim == pytest.approx(similarity, abs=1e-6)
    assert found.psnr == pytest.approx(noise, abs=1e-10)
    assert found.cqm == pytest.approx(colours, abs=1e-10)


@pytest.mark.parametrize(("shape", "width"), [((49, 70), 3), (((32, 41)), 2)])
def test_ms_ssim__is_as_defined_on_small_pictures(shape, width):
    rng = np.random.default_rng(0)
    truth = rng.uniform(0, 255, shape)
    picture = truth + rng.normal(0, 20, shape)
    expected, weights = 1.0, (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
    one, other = picture, truth
    for scale, weight in enumerate(weights):
        both, structure = similarity_by_definition(one, other, width)
        expected *= (both if scale == 4 else structure) ** weight
        one, other = halved(one), halved(other)
    assert background_measures.ms_ssim(picture, truth) == pytest.approx(expected, abs=1e-12)


def test_measures__count_errors_by_hand():
    truth = np.full((20, 20), 100.0)
    computed = truth.copy()
    computed[5:8, 5:8] = 130.0  # nine error pixels, of which the middle one has four beside it
    computed[0, 0] = computed[0, 1] = computed[1, 0] = 121.0  # a corner: outside counts as wrong
    computed[15, 15] = 120.0  # at the threshold, not beyond it
    found = measures(computed, truth)
    assert found.age == pytest.approx((9 * 30 + 3 * 21 + 20) / 400)
    assert found.peps == pytest.approx(12 / 400)
    assert found.pceps == pytest.approx(2 / 400)
    assert found.psnr == pytest.approx(
        10 * math.log10(255**2 * 400 / (9 * 30**2 + 3 * 21**2 + 20**2))
    )
    assert math.isnan(found.cqm)


def test_measures__of_colours_use_luma():
    truth = np.full((16, 16, 3), 100.0)
    for channel, weight in enumerate((0.299, 0.587, 0.114)):
        computed = truth.copy()
        computed[..., channel] += 50.0
        found = measures(computed, truth)
        assert found.age == round(50 * weight)
        assert found.peps == found.pceps == float(round(50 * weight) > 20)
        assert found.psnr == pytest.approx(20 * math.log10(255 / (50 * weight)))


def test_cqm__is_the_papers_mean_of_psnr():
    # Y falls by (2 * 8) // 4 = 4, U and V rise by 8.
    truth = np.full((16, 16, 3), 100.0)
    computed = truth.copy()
    computed[..., 1] -= 8.0
    luma, chroma = (20 * math.log10(255 / step) for step in (4, 8))
    expected = 0.9449 * luma + 0.0551 * chroma
    assert measures(computed, truth).cqm == pytest.approx(expected, abs=1e-12)


def test_measures__of_equal_pictures_are_the_best():
    picture = scene((64, 48))[1]
    assert measures(picture, picture) == (0.0, 0.0, 0.0, 1.0, math.inf, math.inf)
    assert measures(picture + 0.4, picture) == (0.0, 0.0, 0.0, 1.0, math.inf, math.inf)
    assert measures(np.full((16, 16), 300.0), np.full((16, 16), 255.0)).age == 0.0


def test_ms_ssim__of_a_negative_is_0():
    picture = scene((64, 64))[1] @ background_measures.LUMA
    assert background_measures.ms_ssim(255.0 - picture, picture) == 0.0


@pytest.mark.parametrize(
    ("shape", "other"), [((16, 16), (16, 17)), ((16, 16, 4), (16, 16, 4)), ((16,), (16,))]
)
def test_measures__refuse_other_shapes(shape, other):
    with pytest.raises(ValueError, match="must have one shape"):
        measures(np.zeros(shape), np.zeros(other))


def test_measures__refuse_small_pictures():
    with pytest.raises(ValueError, match="at least 16 pixels"):
        measures(np.zeros((15, 40)), np.zeros((15, 40)))
