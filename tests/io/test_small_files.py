"""Small files below a folder or a URL, and records with a checksum."""

import json

import pytest

from bigkd.io.small_files import files_at, read_record, write_record


@pytest.fixture(params=["folder", "memory"])
def files(request, tmp_path):
    return files_at(tmp_path if request.param == "folder" else f"memory://records/{tmp_path.name}")


def test_record__comes_back_as_it_was_written(files):
    assert read_record(files, "a.json") == {}
    write_record(files, "a.json", {"b": [1, None], "a": {"x": 0.1}})
    assert read_record(files, "a.json") == {"b": [1, None], "a": {"x": 0.1}}
    write_record(files, "a.json", {})
    assert read_record(files, "a.json") == {}


def another_number(record):
    record["content"]["a"] = 2


def no_checksum(record):
    del record["sha256"]


@pytest.mark.parametrize("damage", [another_number, no_checksum, dict.clear])
def test_record__that_is_not_as_it_was_written_is_none(files, damage):
    write_record(files, "a.json", {"a": 1})
    record = json.loads(files.read(["a.json"])["a.json"])
    damage(record)
    files.write({"a.json": json.dumps(record).encode()})
    assert read_record(files, "a.json") is None


@pytest.mark.parametrize("content", [[], ["a"], "a", 3, None])
def test_record__of_what_is_no_mapping_is_none(files, content):
    write_record(files, "a.json", content)
    assert read_record(files, "a.json") is None


@pytest.mark.parametrize("content", [b"", b"\xff", b"null", b"[]", b"{", b"[" * 100_000])
def test_record__of_anything_else_is_none(files, content):
    files.write({"a.json": content})
    assert read_record(files, "a.json") is None
