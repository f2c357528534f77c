"""What the pages in deploy/ say: their folders, job files and commands."""

import re
import shlex
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "deploy"
PLACES = ["laptop", "systemd", "cluster", "slurm", "kubernetes", "cuda", "container"]
PAGES = [DEPLOY / "README.md", *(DEPLOY / place / "README.md" for place in PLACES)]
JOBS = sorted(path for path in DEPLOY.glob("*/*.yaml") if path.stem in ("nightly", "once"))
MANIFESTS = sorted(set((DEPLOY / "kubernetes").glob("*.yaml")) - set(JOBS))


def blocks(page, language):
    """The fenced blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def commands(page):
    """The commands of a page, each as its words; comments left out, continued lines joined."""
    for block in blocks(page, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"\s(?:&&|\|\||\|)\s", line):
                words = shlex.split(part, comments=True)
                if words:
                    yield words
