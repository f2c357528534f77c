import animal_surfaces
import numpy as np
import pytest
from data import FetchError

from bigkd.kernels import Gaussian

ELEPHANTS = {"elephant", "refined_elephant"}


@pytest.fixture(scope="module")
def outcome():
    try:
        return animal_surfaces.main([])
    except FetchError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("kind", ["current", "varifold"])
def test_animal_surfaces__the_elephants_are_nearest_by_far(outcome, kind):
    found = getattr(outcome, kind)
    nearest = animal_surfaces.nearest(found)
    assert nearest.sel(x="elephant") == "refined_elephant"
    assert nearest.sel(x="refined_elephant") == "elephant"
    others = [name for name in found["y"].values if name not in ELEPHANTS]
    assert len(others) == 7
    apart = found["distance"]
    least = float(apart.sel(x=sorted(ELEPHANTS), y=others).min())
    assert least > 20 * float(apart.sel(x="elephant", y="refined_elephant"))
    # Nor are any two of the others.
    between = apart.sel(x=others, y=others).values[~np.eye(7, dtype=bool)]
    assert between.min() > 15 * float(apart.sel(x="elephant", y="refined_elephant"))


@pytest.mark.parametrize(
    ("kind", "same", "camel", "bunny"),
    [("current", 0.0268, 1.1075, 0.7283), ("varifold", 0.0311, 0.9043, 0.6688)],
)
def test_animal_surfaces__distances(outcome, kind, same, camel, bunny):
    row = animal_surfaces.in_norms(getattr(outcome, kind)).sel(x="elephant")
    assert float(row.sel(y="elephant")) == 0.0
    assert float(row.sel(y="refined_elephant")) == pytest.approx(same, abs=2e-4)
    assert float(row.sel(y="camel")) == pytest.approx(camel, abs=2e-4)
    assert float(row.sel(y="bunny00")) == pytest.approx(bunny, abs=2e-4)


@pytest.mark.parametrize("kind", ["current", "varifold"])
def test_animal_surfaces__points_do_not_decide(outcome, kind):
    found, same = getattr(outcome, kind), {"x": "elephant", "y": "refined_elephant"}
    error = outcome.error
    assert float(error.sel(same)) < 0.25 * float(found["distance"].sel(same))
    assert float(error.max()) < 0.01 * float(
        np.sqrt(found["kappa"].sel(x="elephant", y="elephant"))
    )
    assert float(found["promise"].sel(same)) < 0.01 * float(found["distance_squared"].sel(same))


def test_animal_surfaces__what_looks_alike_is_alike(outcome):
    nearest = animal_surfaces.nearest(outcome.current)
    assert nearest.sel(x="triceratops") == "diplodocus"
    assert nearest.sel(x="diplodocus") == "triceratops"


def test_animal_surfaces__are_put_to_a_common_measure(fetch):
    one = fetch(lambda: animal_surfaces.animal("camel", kernel=Gaussian(0.5)))
    assert one.attrs["total_measure"] == pytest.approx(1.0)
    np.testing.assert_allclose(one["weight"].values @ one["point"].values, 0.0, atol=1e-12)
    # The camel stands along z in its file; here it looks towards x.
    spread = np.sqrt(one["weight"].values @ one["point"].values ** 2)
    assert spread[0] > 2 * spread[2]
