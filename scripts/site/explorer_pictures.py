"""Make the pictures of `oplet explore` in docs/gallery.md: pages in a browser, before and after a delegate.

usage: python -m scripts.site.explorer_pictures [--folder FOLDER] [NODES=MODEL ...], with all packages, playwright and chromium

Models of 30, 232 and 712 nodes are generated; NODES=MODEL takes a file in their place.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from plugins.tools.tests.exploring_models import deep_model

from oplet_tools.processes import run_python
from scripts.site.pages import ROOT

__all__ = ["PICTURES", "main"]

#: The number of nodes, and the options of the command, by the picture's name.
PICTURES = {
    "explore-30": (30, ""),
    "explore-30-delegate": (30, "--delegate litert"),
    "explore-232": (232, "--times"),
    "explore-232-delegate": (232, "--delegate example"),
    "explore-712": (712, ""),
    "explore-712-delegate": (712, "--delegate litert"),
}
#: The window, in pixels.
_WINDOW = {"width": 1200, "height": 760}


def main(folder: Path, models: dict[int, Path]) -> None:
    """Make all pictures; of the models that are not given, generated ones."""
    from playwright.sync_api import sync_playwright

    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        window = browser.new_page(viewport=_WINDOW)
        for name, (nodes, options) in PICTURES.items():
            model, page = Path(work) / f"layers_{nodes}.tflite", Path(work) / f"{name}.html"
            if nodes in models:
                model = models[nodes]
            else:
                model.write_bytes(deep_model(nodes))
            run_python(["-m", "oplet", "explore", str(model), "-o", str(page), *shlex.split(options)], check=True)
            window.goto(page.as_uri())
            window.wait_for_selector("body[data-ready=yes]")
            # A chosen node shows what a click tells; in the large one it is found by its tensor.
            if nodes == 712:
                window.fill("#search", "block_77/gate")
                window.press("#search", "Enter")
            elif nodes == 30:
                window.evaluate("oplet.cy.nodes('.box')[3].emit('tap')")
            window.wait_for_timeout(300)  # the canvas is drawn a little later
            window.screenshot(path=folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m scripts.site.explorer_pictures", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "gallery")
    parser.add_argument("models", nargs="*", metavar="NODES=MODEL")
    given = parser.parse_args(sys.argv[1:])
    main(given.folder, {int(nodes): Path(path) for nodes, _, path in (text.partition("=") for text in given.models)})
