import classes_left_out
import data
import pytest


@pytest.mark.parametrize(
    ("dataset", "load", "left_out"),
    [("mnist", data.mnist, {"3", "7"}), ("fashion", data.fashion_mnist, {"trouser", "bag"})],
    ids=["mnist", "fashion"],
)
def test_classes_left_out__are_the_top_modes(tmp_path, fetch, dataset, load, left_out):
    fetch(load)
    outcome = classes_left_out.main(
        ["--dataset", dataset, "--rows", "5000", "--out", str(tmp_path)]
    )
    assert set(outcome.left_out) == left_out
    first, second, *_ = outcome.missing
    assert {first.name, second.name} == left_out
    assert min(first.purity, second.purity) >= 0.95
    assert first.significant
    assert {mode.name for mode in outcome.twice[:2]} == left_out
    assert min(mode.purity for mode in outcome.twice[:2]) >= 0.95
    assert not {mode.name for mode in outcome.swapped} & left_out
    assert outcome.sheet.stat().st_size > 1000


def test_classes_left_out__more_rows_than_there_are_is_an_error(tmp_path, fetch):
    fetch(data.mnist)
    with pytest.raises(SystemExit, match="--rows must be at most"):
        classes_left_out.main(["--rows", "60000", "--out", str(tmp_path)])
