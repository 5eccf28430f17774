"""The page on which a visitor opens a model: what Python says there, what the page loads, and that it is all that it can load.

OPLET_PYODIDE names a folder with Pyodide's files and its wheel of numpy; with it and a browser the page itself is opened.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts.site import tryout
from scripts.site.visiting import answer_of, graph_of
from tests.children import run_child
from tests.places import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"


def test_a_model_s_graph_is_a_page_and_says_the_visitor_s_name_of_it() -> None:
    told = json.loads(graph_of(str(DIGITS), "<b>mine.tflite"))
    assert told["error"] == ""
    assert told["facts"].startswith("<b>mine.tflite: 9 nodes, ")
    assert "<title>oplet explore: &lt;b&gt;mine.tflite</title>" in told["page"]
    assert str(ROOT) not in told["page"]
    assert "CONV_2D" in told["page"]


def test_a_model_answers_random_inputs_the_same_for_the_same_seed() -> None:
    one, again, other = (json.loads(answer_of(str(DIGITS), seed)) for seed in (1, 1, 2))
    assert one["error"] == ""
    assert one["tensors"] == again["tensors"] != other["tensors"]
    assert [row[:4] for row in one["tensors"]] == [
        ["input", "serving_default_image:0", "int8", "[1, 8, 8, 1]"],
        ["output", "StatefulPartitionedCall_1:0", "int8", "[1, 10]"],
    ]


def test_what_is_no_model_is_told_in_one_sentence_without_the_file_s_place(tmp_path: Path) -> None:
    file = tmp_path / "model.tflite"
    file.write_bytes(b"\x00" * 3)
    broken = DIGITS.read_bytes()
    for data in (file.read_bytes(), b"PK\x03\x04" + bytes(400), broken[: len(broken) // 2]):
        file.write_bytes(data)
        for told in (json.loads(graph_of(str(file), "mine.tflite")), json.loads(answer_of(str(file), 0))):
            assert told["error"]
            assert "\n" not in told["error"]
            assert str(tmp_path) not in told["error"]
    assert "mine.tflite" in json.loads(graph_of(str(file), "mine.tflite"))["error"]


def test_a_custom_op_that_nobody_serves_is_named_and_the_graph_is_drawn_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "model.tflite"
    file.write_bytes((ROOT / "examples/atan/atan.tflite").read_bytes().replace(b"Atan", b"Acot"))
    assert "Acot" in json.loads(graph_of(str(file), "mine.tflite"))["page"]
    assert "Acot" in json.loads(answer_of(str(file), 0))["error"]


@pytest.fixture(scope="module")
def packed() -> bytes:
    return tryout.archive()


@pytest.mark.environment
def test_the_archive_is_all_that_a_bare_python_with_numpy_needs(packed: bytes, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(site)
        names = archive.namelist()
    assert not [
        name
        for name in names
        if name.endswith((".so", ".pyc", ".pyd", ".pth")) or ("/tests/" in name and not name.endswith(".in"))
    ]
    for name in ("numpy", "numpy.libs"):
        place = Path(np.__file__).parent.parent / name
        if place.exists():
            (site / name).symlink_to(place)
    program = f"""if True:
        import sys
        sys.path.append({str(site)!r})
        exec(open({str(ROOT / "scripts/site/visiting.py")!r}).read())
        print(answer_of({str(DIGITS)!r}, 1)[-12:], len(graph_of({str(DIGITS)!r}, "x")) > 100_000)
        print(*sorted({{node.distribution for node in Interpreter({str(ROOT / "examples/atan/atan.tflite")!r}).explain()}}))
    """
    said = run_child([sys.executable, "-I", "-S", "-c", program], cwd=tmp_path).stdout.splitlines()
    assert said[0] == '"error": ""} True'
    assert "oplet-atan-op" in said[1]


@pytest.mark.environment
def test_the_archive_has_the_same_bytes_each_time(packed: bytes) -> None:
    assert hashlib.sha256(tryout.archive()).digest() == hashlib.sha256(packed).digest()


def test_every_file_of_the_page_has_its_hash_and_what_comes_from_elsewhere_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPLET_PYODIDE", raising=False)
    monkeypatch.setattr(tryout, "archive", lambda: b"packed")
    found = tryout.files()
    listed = json.loads(found.pop("files.json"))
    assert listed.keys() == {"packages.zip", "visiting.py", *tryout.FROM_ELSEWHERE}
    for name, data in found.items():
        digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
        assert listed[name] == {"address": name, "integrity": f"sha256-{digest}"}
    for name, (address, digest) in tryout.FROM_ELSEWHERE.items():
        assert tryout.VERSION in address
        assert listed[name]["integrity"] == f"sha256-{base64.b64encode(bytes.fromhex(digest)).decode()}"
    for name, (address, _) in tryout.FROM_ELSEWHERE.items():
        (tmp_path / address.rpartition("/")[2]).write_bytes(name.encode())
    held = tryout.files(tmp_path)
    assert all(each["address"] in held for each in json.loads(held["files.json"]).values())


def test_the_workflow_and_the_page_name_the_same_pyodide() -> None:
    for file in (".github/workflows/browser.yml", "docs/try.md"):
        assert set(re.findall(r"[Pp]yodide[@ ](\d+\.\d+\.\d+)", (ROOT / file).read_text("utf-8"))) == {tryout.VERSION}, file


#: Loads the page's worker, and tries to ask for something else and to send something.
PROBE = """
importScripts("worker.js");
(async () => {
    const found = [typeof XMLHttpRequest, typeof WebSocket, typeof EventSource];
    for (const [address, options] of [["../try.html", {}], ["files.json", {method: "POST", body: "x"}]]) {
        await fetch(new URL(address, self.location), options).then(() => found.push("asked"), (error) => found.push(error.message));
    }
    postMessage(found);
})();
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the page is served, with Pyodide beside it."""
    if not os.environ.get("OPLET_PYODIDE"):
        pytest.skip("OPLET_PYODIDE names no folder with Pyodide's files and its wheel of numpy")
    rehearsal = pytest.importorskip("scripts.rehearsal", reason="pip install cyclonedx-python-lib", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs" / "try", folder / "try")
    for name, data in tryout.files().items():
        (folder / "try" / name).parent.mkdir(exist_ok=True)
        (folder / "try" / name).write_bytes(data)
    (folder / "try" / "probe.js").write_text(PROBE, "utf-8")
    page = (ROOT / "docs" / "try.md").read_text("utf-8")
    html = page[page.index("<style>") : page.index("</script>") + len("</script>")]
    (folder / "try.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><link rel=icon href=data:,><body>{html}", "utf-8")
    with rehearsal.served(folder) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no browser is installed; apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.environment
def test_a_visitor_s_model_is_drawn_and_runs_and_nothing_is_asked_for_but_the_page_s_files(
    address: str, browser: Any, tmp_path: Path
) -> None:
    asked: list[tuple[str, str]] = []
    window = browser.new_page()
    window.context.on("request", lambda request: asked.append((request.method, request.url)))
    window.goto(f"{address}/try.html")
    window.set_input_files("#try-file", str(DIGITS))
    window.wait_for_function(
        "document.getElementById('try-status').textContent.includes(' bytes.') || document.querySelector('.failure')",
        timeout=300_000,
    )
    assert window.inner_text("#try-status").startswith("digits_int8.tflite: 9 nodes, ")
    window.frame_locator("#try-graph").locator("body[data-ready=yes]").wait_for(timeout=60_000)
    window.fill("#try-seed", "5")
    window.click("#try-run")
    window.wait_for_selector("#try-answer table", timeout=120_000)
    there = [row.inner_text().split("\t") for row in window.query_selector_all("#try-answer tr")][1:]
    assert there == json.loads(answer_of(str(DIGITS), 5))["tensors"]
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(b"\x00" * 100)
    window.set_input_files("#try-file", str(broken))
    window.wait_for_selector(".failure")
    assert "broken.tflite" in window.inner_text("#try-status")
    assert window.is_disabled("#try-run")
    assert {method for method, _ in asked} == {"GET"}
    own = {f"{address}/try.html", *(f"{address}/try/{name}" for name in ("page.js", "worker.js", "files.json"))}
    listed = {f"{address}/try/{each['address']}" for each in json.loads(tryout.files()["files.json"]).values()}
    assert {url for _, url in asked if not url.startswith(("blob:", "data:", "about:"))} == own | listed
    window.close()


@pytest.mark.environment
def test_python_on_the_page_can_ask_for_no_other_address(address: str, browser: Any) -> None:
    window = browser.new_page()
    window.goto(f"{address}/try.html")
    told = window.evaluate(
        """() => new Promise((done, failed) => {
            const worker = new Worker("try/probe.js");
            worker.onmessage = ({data}) => done(data);
            worker.onerror = (event) => failed(new Error(event.message));
        })"""
    )
    assert told[:3] == ["undefined"] * 3
    assert all(words.endswith("is no file of this page") for words in told[3:])
    assert len(told) == 5
    window.close()
