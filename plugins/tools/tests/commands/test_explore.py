"""`oplet explore`: the files that it writes, and its page in a real browser, where one is installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image
from plugins.tools.tests.exploring_models import HOSTILE, deep_model, hostile_model


class Opened:
    """A page in the browser: what went wrong on it, and what it asked for besides itself."""

    def __init__(self, page: Any, path: Path) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text))
        page.route("**/*", self._asked)
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready=yes]")

    def _asked(self, route: Any) -> None:
        if not route.request.is_navigation_request():
            self.requests.append(route.request.url)
        route.continue_()

    def boxes(self) -> list[dict[str, Any]]:
        """The boxes: their labels, and the heights of the letters on the screen."""
        found: list[dict[str, Any]] = self.page.evaluate(
            "oplet.cy.nodes('.box').map(n => ({id: n.id(), label: n.data('label'), letters: n.numericStyle('font-size') * oplet.cy.zoom(),"
            " x: n.renderedPosition().x, y: n.renderedPosition().y}))"
        )
        return found

    def double_click(self, box: dict[str, Any]) -> None:
        place = self.page.locator("#graph").bounding_box()
        self.page.mouse.dblclick(place["x"] + box["x"], place["y"] + box["y"])

    def details(self) -> str:
        text: str = self.page.locator("#right").inner_text()
        return text


@pytest.fixture
def shown(browser: Any, oplet: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """`shown(model, *options)`: the page of a model's bytes, in the browser."""
    pages = []

    def show(model: bytes, *options: str) -> Opened:
        (tmp_path / "model.tflite").write_bytes(model)
        ran = oplet("explore", tmp_path / "model.tflite", "-o", tmp_path / "model.html", *options)
        assert ran.code == 0, ran.err
        pages.append(Opened(browser.new_page(viewport={"width": 1400, "height": 900}), tmp_path / "model.html"))
        return pages[-1]

    yield show
    for opened in pages:
        opened.page.close()
        assert (opened.errors, opened.requests) == ([], [])


@pytest.mark.parametrize("nodes", [30, 232, 712])
def test_a_model_starts_as_few_boxes_with_legible_labels(shown: Callable[..., Opened], nodes: int) -> None:
    boxes = shown(deep_model(nodes)).boxes()
    assert 10 <= len(boxes) <= 60
    assert min(box["letters"] for box in boxes) >= 11
    assert all(box["label"] for box in boxes)


def test_search_finds_a_tensor_and_unfolds_what_hides_its_node(shown: Callable[..., Opened]) -> None:
    opened = shown(deep_model(712))
    assert not any("Tanh" in box["label"] for box in opened.boxes())
    opened.page.fill("#search", "block_77/gate/tanh")
    opened.page.press("#search", "Enter")
    assert "net/stage_6/block_77/gate/Tanh" in opened.details()
    chosen = opened.page.evaluate("oplet.state.chosen")
    [box] = [box for box in opened.boxes() if box["id"] == chosen]
    assert (abs(box["x"] - opened.page.evaluate("oplet.cy.width()") / 2), box["letters"] >= 11) == (pytest.approx(0, abs=2), True)


def test_a_double_click_unfolds_a_group_and_another_folds_it(shown: Callable[..., Opened]) -> None:
    opened = shown(deep_model(712))
    before = {box["id"] for box in opened.boxes()}
    group = next(box for box in opened.boxes() if box["label"].startswith("stage_1\n"))
    opened.double_click(group)
    opened.page.wait_for_function(f"oplet.cy.nodes('.box').length > {len(before)}")
    assert group["id"] not in {box["id"] for box in opened.boxes()}
    opened.page.click("#right button")
    assert {box["id"] for box in opened.boxes()} == before


def test_all_boxes_have_places_of_their_own_when_everything_is_unfolded_and_fit_shows_them_all(
    shown: Callable[..., Opened],
) -> None:
    opened = shown(deep_model(712))
    before = opened.page.evaluate("oplet.cy.elements().jsons()")
    opened.page.click("#unfold")
    sides = opened.page.evaluate("oplet.cy.nodes('.box').map(n => n.boundingBox({includeLabels: false}))")
    assert len(sides) == 571
    sides.sort(key=lambda box: box["y1"])
    for place, box in enumerate(sides):
        for other in sides[place + 1 : place + 40]:
            assert box["x2"] <= other["x1"] or other["x2"] <= box["x1"] or box["y2"] <= other["y1"]
    opened.page.click("#fit")
    seen = opened.page.evaluate("oplet.cy.elements().renderedBoundingBox()")
    width, height = opened.page.evaluate("[oplet.cy.width(), oplet.cy.height()]")
    assert min(seen["x1"], seen["y1"], width - seen["x2"], height - seen["y2"]) >= 0
    opened.page.click("#fold")
    again = opened.page.evaluate("oplet.cy.elements().jsons()")
    assert sorted(again, key=str) == sorted(before, key=str)


def test_other_colours_move_nothing(shown: Callable[..., Opened]) -> None:
    opened = shown(deep_model(30))
    opened.page.evaluate("oplet.cy.zoom(0.5)")
    before, fills = opened.boxes(), opened.page.evaluate("oplet.cy.nodes('.box').map(n => n.data('colours'))")
    opened.page.select_option("#colour", "op")
    assert opened.boxes() == before
    assert opened.page.evaluate("oplet.cy.nodes('.box').map(n => n.data('colours'))") != fills


def test_a_click_tells_who_serves_a_node_and_what_it_reads_and_writes(shown: Callable[..., Opened]) -> None:
    opened = shown(deep_model(30))
    node = next(box for box in opened.boxes() if box["label"].startswith("TANH"))
    opened.page.mouse.click(*(opened.page.locator("#graph").bounding_box()[axis] + node[axis] for axis in "xy"))
    opened.page.wait_for_function("oplet.state.chosen !== null")
    told = opened.details()
    for part in (
        "TANH, version 1",
        "served by",
        "oplet-",
        "float32 [1 \N{MULTIPLICATION SIGN} 16]",
        "64 bytes",
        "/act/Relu",
        "/gate/Tanh",
    ):
        assert part in told


def test_a_page_can_be_coloured_by_everything_that_it_knows(shown: Callable[..., Opened]) -> None:
    pytest.importorskip("oplet_example_delegate")
    opened = shown(deep_model(30), "--times", "--delegate", "example")
    choices = opened.page.locator("#colour option").evaluate_all("options => options.map(option => option.value)")
    assert {"package", "delegate", "version", "time", "memory"} <= set(choices)
    for choice in choices:
        opened.page.select_option("#colour", choice)
        assert opened.page.locator("#legend div").count(), choice


def test_constants_are_shown_when_they_are_asked_for(shown: Callable[..., Opened]) -> None:
    opened = shown(deep_model(30))
    assert not any("DEQUANTIZE" in box["label"] for box in opened.boxes())
    opened.page.check("#constants")
    assert any("DEQUANTIZE" in box["label"] for box in opened.boxes())


def test_hostile_names_are_text_in_the_page(shown: Callable[..., Opened]) -> None:
    opened = shown(hostile_model())
    assert opened.page.title() == "oplet explore: model.tflite"
    assert opened.page.locator("img").count() == 0
    assert HOSTILE[0] in opened.details()
    opened.page.fill("#search", "<img")
    assert "onerror=alert(1)" in opened.page.locator("#found").inner_text()
    opened.page.press("#search", "Enter")
    assert "<!-- <img src=x onerror=alert(1)>" in opened.details()
    opened.page.fill("#search", "xxxxxxxx")
    opened.page.press("#search", "Enter")
    assert "x" * 10_000 in opened.details()


def test_the_overview_is_shown_where_something_is_off_the_screen_and_leads_there(shown: Callable[..., Opened]) -> None:
    opened = shown(deep_model(712))
    opened.page.click("#unfold")
    assert opened.page.locator("#map").is_visible()
    before = opened.page.evaluate("oplet.cy.extent()")
    place = opened.page.locator("#map").bounding_box()
    opened.page.mouse.click(place["x"] + place["width"] / 2, place["y"] + 0.9 * place["height"])
    after = opened.page.evaluate("oplet.cy.extent()")
    assert after["y1"] > before["y2"]
    inked = "(() => {const m = document.getElementById('map'); return m.getContext('2d').getImageData(0, 0, m.width, m.height).data.some(v => v)})()"
    assert opened.page.evaluate(inked)
    opened.page.click("#fit")
    assert not opened.page.locator("#map").is_visible()


def test_a_graph_is_saved_as_svg_with_every_box_and_edge(shown: Callable[..., Opened], tmp_path: Path) -> None:
    opened = shown(hostile_model())
    with opened.page.expect_download() as saving:
        opened.page.click("#svg")
    assert saving.value.suggested_filename == "model.svg"
    root = ElementTree.parse(saving.value.path()).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    edges = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(edges) == opened.page.evaluate("oplet.cy.edges().length") > 5
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {line for box in opened.boxes() for line in box["label"].split("\n")} <= texts


def test_a_graph_is_saved_as_png_of_all_that_is_drawn(shown: Callable[..., Opened]) -> None:
    opened = shown(deep_model(712))
    opened.page.click("#unfold")
    with opened.page.expect_download() as saving:
        opened.page.click("#png")
    with Image.open(saving.value.path()) as picture:
        assert max(picture.size) > 7000
        assert len({picture.getpixel((picture.width // 2, y)) for y in range(0, picture.height, 7)}) > 2


def test_dark_colours_are_the_system_s_or_asked_for_and_text_stays_legible(
    shown: Callable[..., Opened], browser: Any, tmp_path: Path
) -> None:
    opened = shown(deep_model(30))
    background = "getComputedStyle(document.body).backgroundColor"
    assert opened.page.evaluate(background) == "rgb(255, 255, 255)"
    opened.page.check("#dark")
    assert opened.page.evaluate(background) == "rgb(20, 25, 31)"
    assert opened.page.evaluate("oplet.cy.nodes('.title')[0].style('color')") == "rgb(227,232,238)"
    assert opened.page.evaluate("oplet.cy.nodes('.box')[0].style('color')") == "rgb(28,39,51)"
    assert "#14191f" in opened.page.evaluate("oplet.picture()")
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto((tmp_path / "model.html").as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    assert page.evaluate(background) == "rgb(20, 25, 31)"
    context.close()


def test_a_graph_runs_to_the_right_when_that_is_asked_for(shown: Callable[..., Opened]) -> None:
    opened = shown(deep_model(30))
    sides = "(() => {const b = oplet.cy.nodes('.box').boundingBox(); return [b.w, b.h]})()"
    width, height = opened.page.evaluate(sides)
    assert height > width
    opened.page.select_option("#direction", "LR")
    width, height = opened.page.evaluate(sides)
    assert width > height


def test_on_a_narrow_screen_the_search_stands_above_the_graph(shown: Callable[..., Opened]) -> None:
    opened = shown(deep_model(30))
    opened.page.set_viewport_size({"width": 390, "height": 800})
    search, graph = (opened.page.locator(name).bounding_box() for name in ("#search", "#graph"))
    assert search["y"] + search["height"] <= graph["y"] < 700
    assert graph["height"] > 300


def test_the_graph_for_model_explorer_and_the_data_are_json(oplet: Any, digits: Path, tmp_path: Path) -> None:
    assert oplet("explore", digits, "--format", "model-explorer", "-o", tmp_path / "graph.json").code == 0
    collection = json.loads((tmp_path / "graph.json").read_bytes())
    data = json.loads(oplet("explore", digits, "--json").out)
    [subgraph] = data["subgraphs"]
    assert len(collection["graphs"][0]["nodes"]) == len(subgraph["nodes"]) + 2 - sum(node["folded"] for node in subgraph["nodes"])
    assert sum(node["macs"] or 0 for node in subgraph["nodes"]) > 0


def test_a_node_without_multiplications_has_none_and_not_an_unknown_number(oplet: Any, digits: Path, tmp_path: Path) -> None:
    [subgraph] = json.loads(oplet("explore", digits, "--json").out)["subgraphs"]
    macs = {node["op"]: node["macs"] for node in subgraph["nodes"]}
    assert macs["SOFTMAX"] == 0, macs
    assert macs["CONV_2D"] > 0


def test_partitions_and_the_reasons_against_them_are_told(oplet: Any, examples: Path) -> None:
    pytest.importorskip("oplet_example_delegate")
    ran = oplet("explore", examples / "digits" / "digits_float32.tflite", "--delegate", "example", "--json")
    [subgraph] = json.loads(ran.out)["subgraphs"]
    claimed = [node for node in subgraph["nodes"] if node["partition"] is not None]
    assert claimed
    assert all(node["delegate"] == "example" and node["served_by"].startswith("example, partition ") for node in claimed)
    assert all(node["left"] for node in subgraph["nodes"] if node["partition"] is None)
    assert {group["partition"] for group in subgraph["partition_groups"]} >= {node["partition"] for node in claimed}
    assert all(node["package"] for node in subgraph["nodes"]), "who would serve it without the delegate"


def test_options_that_contradict_each_other_are_refused(oplet: Any, digits: Path) -> None:
    for options in (("--json", "-o", "x.html"), ("--open", "--json"), ("--open", "--format", "model-explorer")):
        assert oplet("explore", digits, *options).code == 2


@pytest.mark.parametrize("format", ["html", "model-explorer"])
def test_without_output_no_file_is_replaced_but_an_earlier_page(
    oplet: Any, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "index.tflite").write_bytes(digits.read_bytes())
    target = tmp_path / ("index.html" if format == "html" else "index.json")
    target.write_text("<title>mine</title> oplet explore")
    ran = oplet("explore", "index.tflite", "--format", format)
    assert ran.code == 2
    assert f"'{target.name}' is there already and is no page of" in " ".join(ran.err.replace("\u2502", " ").split())
    assert "--output" in ran.err
    assert target.read_text() == "<title>mine</title> oplet explore"
    assert oplet("explore", "index.tflite", "--format", format, "-o", target).code == 0, "named, it is replaced"
    made = target.read_bytes()
    if format == "html":
        target.write_bytes(made + b"<!-- old -->")
        assert oplet("explore", "index.tflite").code == 0, "a page of its own is replaced"
        assert target.read_bytes() == made
    target.rename(tmp_path / "precious")
    target.symlink_to("precious")
    assert oplet("explore", "index.tflite", "--format", format).code == 2
    assert target.is_symlink()
    target.unlink()
    assert oplet("explore", "index.tflite", "--format", format).code == 0
    assert target.is_file()


@pytest.mark.parametrize("is_there", [True, False])
def test_the_page_is_opened_in_a_browser_or_the_lack_of_one_is_said(
    oplet: Any, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    asked = []
    monkeypatch.setattr("webbrowser.open", lambda address: asked.append(address) or is_there)
    ran = oplet("explore", digits, "-o", tmp_path / "digits.html", "--open")
    assert asked == [(tmp_path / "digits.html").as_uri()]
    assert ran.code == (0 if is_there else 1)
    assert ("no browser was found" in ran.err) is not is_there
    assert (tmp_path / "digits.html").is_file()
