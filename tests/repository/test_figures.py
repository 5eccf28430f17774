"""Figures of pages are those that were measured: nobody writes them by hand, and they do not grow old unseen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scripts.figures import FILE, PAGE, REAL, fill, main, marked_pages, sizes
from scripts.figures_page import FIGURES, figures_page
from tests.places import ROOT

#: Pages whose figures of size and time are measured. Others have limits, and records of single runs.
MEASURED = [
    "README.md",
    "core/README.md",
    "docs/selective-builds.md",
    "docs/choosing-an-engine.md",
    "docs/how-it-runs.md",
    "docs/plugins.md",
]
#: Sizes may be so far from what a build gives now.
TOLERANCE = 0.1


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return json.loads(FILE.read_text("utf-8"))


def test_pages_tell_the_figures_of_the_file(figures: dict[str, Any]) -> None:
    pages = marked_pages()
    assert {"README.md", "selective-builds.md"} <= {page.name for page in pages}
    for page in pages:
        text = page.read_text("utf-8")
        assert fill(text, figures) == text, f"{page}: run `python -m scripts.figures`"


def test_a_figure_that_is_changed_by_hand_is_found(figures: dict[str, Any]) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    changed = re.sub(r"(<!-- figure: build-kb -->)[^<]*", r"\g<1>1 kB", text)
    assert changed != text == fill(changed, figures)


def test_the_page_of_all_figures_is_made_from_the_file(figures: dict[str, Any]) -> None:
    assert figures_page(figures) == PAGE.read_text("utf-8"), "run `python -m scripts.figures`"


def test_every_figure_is_told_somewhere_and_says_when_and_where_it_was_measured(figures: dict[str, Any]) -> None:
    text = "".join(page.read_text("utf-8") for page in marked_pages())
    assert set(re.findall(r"<!-- figure: ([\w-]+) -->", text)) == set(FIGURES)
    assert text.count("<!-- figure: ") == text.count("<!-- end -->")
    for part in ("sizes", "times", "speed", "plain"):
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", figures[part]["date"])
        assert figures[part]["machine"]
        assert "numpy" in figures[part]["versions"]
        assert {"oplet", "oplet-core"} & set(figures[part]["versions"]), "which had the first name once"


@pytest.mark.parametrize("option", ["--measure", "--speed", "--plain"])
def test_times_are_not_measured_on_a_busy_machine_unless_that_is_asked_for(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = FILE.read_bytes()
    monkeypatch.setattr("os.getloadavg", lambda: (19.0, 19.0, 19.0), raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert main([option]) == 1
    assert "19 processes want to run on 2 cores" in capsys.readouterr().err
    assert FILE.read_bytes() == before


@pytest.mark.parametrize("page", MEASURED)
def test_no_size_or_time_is_written_by_hand(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    by_hand = re.sub(r"<!-- figure: .*?<!-- end -->", "", text, flags=re.DOTALL)
    assert not re.findall(r"\d[\d.,]* ?(?:kB|MB|KiB|MiB|ms|milliseconds|times (?:as fast|faster|as long))\b", by_hand), page
    assert not re.search(
        r"\b(?:half|third|quarter|fifths?|twice) (?:of )?(?:the (?:time|size)|as fast|as long as LiteRT)", by_hand
    ), page


@pytest.mark.environment
@pytest.mark.skipif(not REAL.exists(), reason="the recorded cases lie outside the project and are not here")
def test_sizes_are_those_of_today(figures: dict[str, Any], tmp_path: Path) -> None:
    now = sizes(REAL, tmp_path)
    for kind in ("wheels", "programs", "builds"):
        assert set(now[kind]) == set(figures["sizes"][kind])

    def numbers(told: object) -> list[float]:
        return [told] if isinstance(told, int) else [n for key in sorted(told) for n in numbers(told[key])]  # type: ignore

    for kind in ("wheels", "programs", "builds"):
        told = numbers(figures["sizes"][kind])
        assert numbers(now[kind]) == pytest.approx(told, rel=TOLERANCE), f"{kind}: run `python -m scripts.figures --sizes`"
