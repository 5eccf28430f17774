"""How fluid the page of `oplet explore` is in a browser: the time to open it, and its frames while someone pans, zooms and unfolds.

    python -m benchmarks.exploring [MODEL.tflite ...] [--nodes N ...] [--rounds N]

Without a model it makes some with layers in stages, of 232 and 712 nodes. It needs playwright and a Chromium, which draws in software
here: what it says is about the work of the page on the processor. Seconds are medians of rounds, from a click until the page has drawn:
"open" is from the navigation, "unfold" shows every node, "colour" colours them anew. Milliseconds are between one frame and the next
while the mouse drags the graph or its wheel zooms: in the middle, of 19 in 20, and the longest; 17 is what a screen of 60 Hz asks for.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plugins.tools.tests.exploring_models import deep_model

from oplet_tools.describing.exploring.explore import explore_model
from oplet_tools.describing.exploring.page import explore_page

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WIDTH, _HEIGHT = 1400, 900
_EVENTS = 60
#: Keeps the times of frames between two calls. The page's policy allows no evaluation of texts, and this needs none.
_FRAMES = """
let collecting = false, at = [];
window.startFrames = () => {
  at = []; collecting = true;
  const step = () => { if (collecting) { at.push(performance.now()); requestAnimationFrame(step); } };
  requestAnimationFrame(step);
};
window.endFrames = () => { collecting = false; return at; };
"""
_DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--nodes", type=int, nargs="+", default=(232, 712), help="of the models that it makes")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = arguments.models
        if not models:
            models = [Path(folder, f"{count} nodes.tflite") for count in arguments.nodes]
            for path, count in zip(models, arguments.nodes):
                path.write_bytes(deep_model(count))
        _measure(models, Path(folder), arguments.rounds)


def _measure(models: list[Path], folder: Path, rounds: int) -> None:
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        raise SystemExit(f"none of {', '.join(_BROWSERS)} is installed; apt-get install chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for model in models:
            page = folder / "page.html"
            page.write_text(explore_page(explore_model(os.fspath(model))), "utf-8")
            seconds: dict[str, list[float]] = {}
            frames: dict[str, list[float]] = {}
            for _ in range(rounds):
                opened = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
                boxes = _visit(opened, page.as_uri(), seconds, frames)
                opened.close()
            print(f"{model.name}: {boxes[0]} boxes, {boxes[1]} when all is unfolded")
            print("  " + ", ".join(f"{name} {statistics.median(found):.2f} s" for name, found in seconds.items()))
            for name, found in frames.items():
                ordered = sorted(found)
                middle, most = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
                print(f"  {name:24} {middle:4.0f} {most:4.0f} {ordered[-1]:4.0f} ms, {len(ordered)} frames", flush=True)
        browser.close()


def _visit(page: Any, address: str, seconds: dict[str, list[float]], frames: dict[str, list[float]]) -> tuple[int, int]:
    """Open the page and use it as a person does, noting times: the number of boxes before and after all is unfolded."""

    def timed(name: str, act: Callable[[], object]) -> None:
        start = time.perf_counter()
        act()
        page.evaluate(_DRAWN)
        seconds.setdefault(name, []).append(time.perf_counter() - start)

    def moved(name: str, move: Callable[[int], object]) -> None:
        page.evaluate("startFrames()")
        for event in range(_EVENTS):
            move(event)
        at = page.evaluate("endFrames()")
        frames.setdefault(name, []).extend(after - before for before, after in itertools.pairwise(at))

    def use(state: str) -> None:
        page.mouse.move(left + 30, top + 30)
        page.mouse.down()
        moved(f"pan, {state}", lambda event: page.mouse.move(left + 30 + 4 * event, top + 30 + event % 30 * 10))
        page.mouse.up()
        page.mouse.move(left + place["width"] / 2, top + place["height"] / 2)
        moved(f"zoom, {state}", lambda event: page.mouse.wheel(0, -60 if event % 30 < 15 else 60))

    def count() -> int:
        return int(page.evaluate("oplet.cy.nodes('.box').length"))

    def open_page() -> None:
        page.goto(address)
        page.wait_for_selector("body[data-ready=yes]")

    page.add_init_script(_FRAMES)
    timed("open", open_page)
    place = page.locator("#graph").bounding_box()
    left, top = place["x"], place["y"]
    folded = count()
    use("folded")
    timed("unfold", lambda: page.click("#unfold"))
    use("unfolded, legible")
    timed("fit all", lambda: page.click("#fit"))
    use("unfolded, all in sight")
    timed("colour", lambda: page.select_option("#colour", "op"))
    return folded, count()


if __name__ == "__main__":
    main()
