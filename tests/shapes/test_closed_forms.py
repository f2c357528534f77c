"""Circles and spheres about one centre, of which kappa is known."""

import numpy as np
import pytest
from scipy import integrate, special

from bigkd.kernels import Gaussian
from tests.shapes.helpers import circle, distance_squared, kappa, sphere

A, B, SIGMA = 1.0, 1.3, 0.6
KERNEL = Gaussian(SIGMA)


def circles(a, b, orientation):
    """Integral of a b exp(-|p - q|^2 / 2 sigma^2) cos(angle)^k over both angles."""
    z = a * b / SIGMA**2
    bessel = special.ive(1, z)
    if orientation == "varifold":
        bessel = 0.5 * (special.ive(0, z) + special.ive(2, z))
    return (2 * np.pi) ** 2 * a * b * np.exp(-((a - b) ** 2) / (2 * SIGMA**2)) * bessel


def spheres(a, b, orientation):
    """Integral of a^2 b^2 exp(-|p - q|^2 / 2 sigma^2) cos(angle)^k over both spheres."""
    z = a * b / SIGMA**2
    integral = 2 * (z * np.cosh(z) - np.sinh(z)) / z**2
    if orientation == "varifold":
        integral = 2 * ((z**2 + 2) * np.sinh(z) - 2 * z * np.cosh(z)) / z**3
    return 8 * np.pi**2 * (a * b) ** 2 * np.exp(-(a * a + b * b) / (2 * SIGMA**2)) * integral


POWER = {"current": 1, "varifold": 2}
CASES = [
    pytest.param(form, shape, sizes, orientation, id=f"{shape.__name__}-{orientation}")
    for form, shape, sizes in ((circles, circle, (20, 40, 80)), (spheres, sphere, (1, 2, 3)))
    for orientation in POWER
]


@pytest.mark.parametrize("orientation", POWER)
def test_closed_form__is_the_integral(orientation):
    def profile(cosine):
        squared = A * A + B * B - 2 * A * B * cosine
        return np.exp(-squared / (2 * SIGMA**2)) * cosine ** POWER[orientation]

    around = integrate.quad(lambda angle: profile(np.cos(angle)), 0, 2 * np.pi, epsabs=1e-13)[0]
    over = integrate.quad(profile, -1, 1, epsabs=1e-13)[0]
    assert circles(A, B, orientation) == pytest.approx(2 * np.pi * A * B * around, rel=1e-11)
    assert spheres(A, B, orientation) == pytest.approx(
        8 * np.pi**2 * (A * B) ** 2 * over, rel=1e-11
    )


@pytest.mark.parametrize(("form", "shape", "sizes", "orientation"), CASES)
def test_kappa__converges_to_the_closed_form_in_second_order(form, shape, sizes, orientation):
    exact = form(A, B, orientation)
    errors = [
        abs(kappa(*(shape(r, n, orientation=orientation) for r in (A, B)), KERNEL) / exact - 1)
        for n in sizes
    ]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))  # elements half as large each time
    assert orders == pytest.approx(2.0, abs=0.15)
    assert errors[-1] < 0.01


@pytest.mark.parametrize(("form", "shape", "sizes", "orientation"), CASES)
def test_distance__converges_to_the_closed_form(form, shape, sizes, orientation):
    exact = form(A, A, orientation) + form(B, B, orientation) - 2 * form(A, B, orientation)
    x, y = (shape(r, sizes[-1], orientation=orientation) for r in (A, B))
    assert distance_squared(x, y, KERNEL) == pytest.approx(exact, rel=0.02)
