"""The layout keeps itself: small files, nothing unexpected, everything tested and shown."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bigkd"
FOLDERS = {"bigkd", "deploy", "examples", "tests"}
EXPECTED = FOLDERS | {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
CAPABILITIES = {
    "finc": "coloured_digits.py",
    "distance": "same_or_different.py",
    "shapes": "animal_surfaces.py",
    "coreset": "representative_digits.py",
    "did": "warped_photos.py",
    "mmdpca": "video_background.py",
}


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for path in map(Path, listed.stdout.splitlines()) if (ROOT / path).exists()]


def test_layout__has_no_unexpected_top_level_entry():
    found = {path.parts[0] for path in tracked()}
    assert {name for name in found if not name.startswith(".")} <= EXPECTED


def test_layout__has_no_long_file():
    long = {
        str(path): lines
        for path in tracked()
        if path.suffix == ".py"
        and (lines := len((ROOT / path).read_text(encoding="utf-8").splitlines())) > 400
    }
    assert not long


@pytest.mark.parametrize("name", CAPABILITIES)
def test_layout__every_capability_has_tests_an_example_and_a_row_in_the_readme(name):
    assert list((ROOT / "tests" / name).glob("test_*.py"))
    assert (ROOT / "examples" / CAPABILITIES[name]).exists()
    assert f"bigkd.{name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_layout__every_optional_dependency_has_one_owner():
    in_io = dict.fromkeys(("pyarrow", "PIL", "s3fs", "trimesh"), "io")
    owners = {
        "cupy": "backends",
        "matplotlib": "jobs",
        **in_io,
        "kr8s": "jobs",
        "dask_jobqueue": "jobs",
        "dask_kubernetes": "jobs",
        "dask_cuda": "jobs",
    }
    for path in PACKAGE.rglob("*.py"):
        for module in re.findall(r"require\(\s*\"(\w+)", path.read_text(encoding="utf-8")):
            assert path.relative_to(PACKAGE).parts[0] == owners[module], path


def test_layout__nothing_unpickles():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
            assert not {"pickle", "cloudpickle", "dill", "joblib"} & set(names), path
            if isinstance(node, ast.keyword):
                assert node.arg != "allow_pickle" or node.value.value is False, path
