"""Reports in a real browser: headless Chromium.

Pages run no scripts, so what a browser makes of one is measured from outside: a page of the test
shows it in frames of several widths, looks into them, and is printed as Chromium then has it.
"""

import functools
import html
import http.server
import json
import re
import subprocess
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from bigkd.jobs.report import pictures_of, write_report
from tests.conftest import require_tool
from tests.jobs.report_cases import HOSTILE, KINDS, distance_result, history, modes_result

MAGENTA = (255, 0, 255)
BROWSER = "not an origin"
WIDTHS = (320, 400, 1280)
LOOK = """
<!doctype html><meta charset="utf-8">
%s
<pre id="found"></pre>
<script>
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, root = page.documentElement;
    const images = [...page.images], texts = [...page.querySelectorAll("svg.chart text")];
    page.querySelectorAll("details").forEach((one) => { one.open = true; });
    const marked = [...page.querySelectorAll("*")].filter((one) =>
      [...one.attributes].some((attribute) => attribute.name.startsWith("on")));
    return {
      title: page.title, width: root.clientWidth, needed: root.scrollWidth,
      images: images.map((one) => one.naturalWidth),
      texts: Math.min(...texts.map((one) => one.getBoundingClientRect().height)),
      marked: marked.length, scripts: page.scripts.length, charts: page.querySelectorAll(
        "svg.chart").length, sections: page.querySelectorAll("section").length,
      ink: getComputedStyle(page.body).color, paper: getComputedStyle(page.body).backgroundColor,
    };
  });
  document.getElementById("found").textContent = JSON.stringify(found);
});
</script>
"""


class Visit(NamedTuple):
    """What came of opening one page."""

    page: str
    """Its elements as they then are."""

    console: list[str]
    asked: set[str]
    """URLs that pages fetched, or tried to; Chromium itself asks for others."""


@pytest.fixture(scope="module")
def visit(tmp_path_factory):
    """Opens pages in Chromium."""
    return functools.partial(_visit, require_tool("chromium"), tmp_path_factory)


def _visit(chromium, folders, path, *flags):
    folder = folders.mktemp("chromium")
    log = folder / "net.json"
    done = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={folder / 'user'}",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--log-net-log={log}",
            "--enable-logging=stderr", "--allow-file-access-from-files",
            *flags, path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    events = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    own = [event for event in events if event.get("initiator", BROWSER) != BROWSER]
    asked = {event["url"] for event in own if event["url"].startswith("http")}
    return Visit(done.stdout, console, asked)


def write(path, runs, **more):
    results = {"drift": distance_result(), "new_modes": modes_result(), **more}
    colour = np.broadcast_to(np.array(MAGENTA, np.uint8), (12, 6, 6, 3))
    pictures = {"new_modes": pictures_of("modes", modes_result(), np.ascontiguousarray(colour))}
    title = more.pop("title", "nightly")
    results.pop("title", None)
    return write_report(
        path, title=title, history=runs, results=results, kinds=KINDS, pictures=pictures
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    hostile = history(3, messages=[HOSTILE] * 3, verdicts={2: "failed"})
    hostile["version"][2] = HOSTILE
    labelled = distance_result(**{"x": HOSTILE, HOSTILE: HOSTILE})
    return {
        "ordinary": write(folder / "a.html", history(30, verdicts={4: "failed", 29: "exceeded"})),
        "one": write(folder / "b.html", history(1)),
        "many": write(folder / "c.html", history(400, start=100, verdicts={399: "failed"})),
        "hostile": write(folder / "d.html", hostile, drift=labelled, title=HOSTILE),
    }


@pytest.fixture(scope="module")
def seen(pages, visit, tmp_path_factory):
    """What Chromium makes of each page at each width, and of opening them all."""
    frames = [(name, width) for name in pages for width in WIDTHS]
    shown = "".join(
        f'<iframe src="{html.escape(pages[name].as_uri())}" width="{width}" height="800" '
        f'style="border:0"></iframe>'
        for name, width in frames
    )
    path = tmp_path_factory.mktemp("look") / "look.html"
    path.write_text(LOOK % shown, encoding="utf-8")
    opened = visit(path, "--dump-dom")
    found = re.search(r'<pre id="found">(.*?)</pre>', opened.page, re.DOTALL)
    measured = json.loads(html.unescape(found.group(1)))
    return dict(zip(frames, measured, strict=True)), opened


def test_browser__every_page_fits_every_width(seen):
    measured, _ = seen
    wide = {at: one["needed"] for at, one in measured.items() if one["needed"] > one["width"]}
    assert {one["width"] for one in measured.values()} == {*WIDTHS}
    assert not wide


def test_browser__pictures_are_decoded_and_charts_drawn(seen):
    measured, _ = seen
    for one in measured.values():
        assert one["images"] == [48] * 11  # small pictures are enlarged
        assert one["charts"] == 8
        assert one["sections"] == 3
        assert one["texts"] > 7  # pixels high, also at 320


def test_browser__what_data_say_does_nothing(seen):
    measured, _ = seen
    for one in measured.values():
        assert (one["scripts"], one["marked"]) == (0, 0)
        assert "owned" not in one["title"].split("<")[0]


def test_browser__nothing_is_loaded_and_nothing_complains(seen):
    _, opened = seen
    assert opened.console == []
    assert opened.asked == set()


def test_browser__is_dark_where_the_reader_wants_it_dark(pages, visit, tmp_path):
    shots = {}
    for name, *flags in (("light",), ("dark", "--blink-settings=preferredColorScheme=0")):
        path = tmp_path / f"{name}.png"
        visit(pages["ordinary"], f"--screenshot={path}", "--window-size=400,6000", *flags)
        with Image.open(path) as shot:
            shots[name] = np.asarray(shot.convert("RGB")).astype(int)
    assert shots["light"][0, 0].min() > 240
    assert shots["dark"][0, 0].max() < 40
    for shot in shots.values():
        assert shot.shape == (6000, 400, 3)
        assert (shot == MAGENTA).all(axis=2).sum() > 11 * 48**2  # the pictures are there


def test_browser__the_page_forbids_what_is_put_into_it(pages, visit, tmp_path):
    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    added = (
        f'<script>document.title="owned"</script><img src="{address}/a.png">'
        f'<link rel="stylesheet" href="{address}/b.css"><iframe src="{address}/c"></iframe>'
    )
    text = pages["one"].read_text(encoding="utf-8")
    opened = []
    for name, content in (("kept", text), ("bare", re.sub("<meta http-equiv[^>]*>", "", text))):
        path = Path(tmp_path / f"{name}.html")
        path.write_text(content.replace("</main>", f"{added}</main>"), encoding="utf-8")
        opened.append(visit(path, "--dump-dom"))
        if name == "kept":
            assert asked == []
    server.shutdown()
    server.server_close()
    kept, bare = opened
    assert "<title>owned" not in kept.page
    assert len(kept.console) >= 4
    assert "<title>owned" in bare.page  # so the test would notice
    assert {*asked} == {"/a.png", "/b.css", "/c"}
    assert bare.asked == {f"{address}{path}" for path in asked}
    assert kept.asked == set()
