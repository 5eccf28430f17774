"""Names that a stranger chose are shown, and obeyed by nothing: no terminal, no browser, no Python, no archive."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from oplet import Interpreter, Model, ModelBuilder
from oplet.errors import ModelError

#: What a terminal, HTML, rich's markup, a template, Python and a shell would each take for theirs.
EVIL = (
    "x\"'\n\r\x1b[31m\x9b\u202e</script><script>alert(1)</script><img src=x onerror=y>[red][link=file:///x]:smile:"
    "{{7*7}}{0}%s${title} $(touch pwned) `touch pwned` =1+1 | \\\" ''' \"\"\"\n__import__('os').system('touch pwned')\n#"
)
FILE = "evil\"'''\nimport os\n<script>|[red].tflite"


def content(custom: str = "") -> bytes:
    builder = ModelBuilder()
    graph = builder.add_subgraph(EVIL)
    x, y, z = (graph.add_tensor(name + EVIL, "float32", [4]) for name in "xyz")
    graph.add_operator("RELU", [x], [y])
    graph.add_operator(custom or "RELU", [y], [z])
    graph.set_inputs(x)
    graph.set_outputs(z)
    builder.add_signature(EVIL, {EVIL: x}, {EVIL: z})
    builder.add_metadata(EVIL, b"x")
    return builder.to_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("OPLET_PLUGINS", "builtin_ops,example_delegate,oplet-build")
    (tmp_path / FILE).write_bytes(content())
    (tmp_path / "custom.tflite").write_bytes(content(EVIL))
    return tmp_path


needs_posix_names = pytest.mark.skipif(os.name == "nt", reason="no file is called so there")


@needs_posix_names
@pytest.mark.parametrize("model", [FILE, "custom.tflite"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect"],
        ["inspect", "--json"],
        ["inspect", "--nodes", "--tensors", "--wide"],
        ["inspect", "--tensor", "1"],
        ["doctor"],
        ["warm"],
        ["versions", "--nodes"],
        ["versions", "--nodes", "--json"],
        ["partition", "--delegate", "example"],
        ["partition", "--delegate", "example", "--json"],
        ["explore", "-o", "page.html"],
        ["explore", "--json"],
        ["explore", "--format", "model-explorer", "-o", "graph.json"],
        ["run"],
        ["compare", "--delegate", "example", "--layers"],
        ["benchmark", "--num-runs", "3", "--min-secs", "0", "--warmup-min-secs", "0"],
        ["select"],
        ["rewrite", "-o", "out.tflite"],
    ],
    ids=" ".join,
)
def test_a_terminal_gets_nothing_to_obey(oplet, folder: Path, model: str, arguments: list[str]) -> None:
    ran = oplet(arguments[0], model, *arguments[1:])
    shown = ran.out + ran.err
    assert shown
    assert [c for c in shown if not c.isprintable() and c != "\n"] == []
    assert not (folder / "pwned").exists()


@needs_posix_names
def test_what_a_server_would_serve_is_told_harmlessly(oplet, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("oplet_serve")
    monkeypatch.setenv("OPLET_PLUGINS", "builtin_ops,serve,oplet-build")
    (folder / "names.tflite").write_bytes(content())
    ran = oplet("serve", "names.tflite", "--check")
    assert ran.code == 0, ran.err
    assert "</script><script>alert(1)</script>" in ran.out
    assert [c for c in ran.out + ran.err if not c.isprintable() and c != "\n"] == []


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.handlers += [name for name, _ in attributes if name.startswith("on")]


@needs_posix_names
def test_pages_and_traces_have_names_as_text(oplet, folder: Path) -> None:
    (folder / "plain.tflite").write_bytes(content().replace(EVIL.encode(), b"x" * len(EVIL.encode())))
    assert b"<script>" not in (folder / "plain.tflite").read_bytes()
    tags = []
    for model, page in ((FILE, "evil.html"), ("plain.tflite", "plain.html")):
        ran = oplet(
            "benchmark",
            model,
            "--num-runs",
            "3",
            "--min-secs",
            "0",
            "--warmup-min-secs",
            "0",
            "--profile-html",
            page,
            "--trace",
            "trace.json",
        )
        assert ran.code == 0, ran.err
        parsed = Tags()
        parsed.feed((folder / page).read_text("utf-8"))
        assert parsed.handlers == []
        tags.append({tag: parsed.seen.count(tag) for tag in ("script", "img", "iframe", "a", "link")})
    assert tags[0] == tags[1]
    trace = (folder / "trace.json").read_text("utf-8")
    assert trace.isascii()
    json.loads(trace)


def test_a_drawing_has_names_as_text(oplet, folder: Path) -> None:
    pytest.importorskip("graphlay")
    ran = oplet("partition", "custom.tflite", "--delegate", "example", "--svg", "out.svg")
    assert ran.code == 0, ran.err
    drawing = ElementTree.parse(folder / "out.svg").getroot()
    assert {element.tag.rpartition("}")[2] for element in drawing.iter()} <= {
        "svg", "title", "style", "defs", "marker", "path", "rect", "text", "line", "g",
    }  # fmt: skip


@needs_posix_names
def test_python_that_is_written_has_names_as_literals(oplet, folder: Path) -> None:
    ran = oplet("select", FILE, "-o", "resolver.py", "--lock", "lock.json")
    assert ran.code == 0, ran.err
    tree = ast.parse((folder / "resolver.py").read_text("utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "oplet"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert all(c.isprintable() or c == "\n" for c in (folder / "resolver.py").read_text("utf-8"))
    json.loads((folder / "lock.json").read_text("utf-8"))


@needs_posix_names
def test_a_wheel_s_texts_and_members_have_a_model_s_name_in_harmless_letters(oplet, folder: Path) -> None:
    ran = oplet("build", FILE, "--name", "cut", "-o", "dist")
    assert ran.code == 0, ran.err
    assert [c for c in ran.out + ran.err if not c.isprintable() and c != "\n"] == []
    [wheel] = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if not re.fullmatch(r"[\w./+-]+", name) or ".." in name] == []
        texts = {name: archive.read(name).decode("utf-8") for name in archive.namelist()}
    assert [name for name, text in texts.items() if "import os\n<script>" in text or "touch pwned" in text] == []
    assert any("evil" in text for name, text in texts.items() if name.endswith("METADATA"))


def with_archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO(content())
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


@pytest.mark.parametrize(
    "members",
    [
        {"../../../../pwned": b"x", "/pwned": b"x", "C:\\pwned": b"x"},
        {"labels.txt": bytes(100 << 20)},
        {str(i): b"" for i in range(20_000)},
    ],
    ids=["names that lead elsewhere", "a bomb", "many members"],
)
def test_an_archive_behind_a_model_is_moved_and_never_unpacked(
    members: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = with_archive(members)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(zipfile.ZipFile, "__init__", None)  # nobody may open one
    Interpreter(model_content=data).allocate_tensors()
    model = Model.from_bytes(data)
    model.root.description = "longer"
    written = model.to_bytes()
    monkeypatch.undo()
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.namelist() == list(members)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change", [lambda d: d[:-1], lambda d: d[:-10] + b"\xff\xff" + d[-8:], lambda d: d[:-6] + b"\xff" * 4 + d[-2:]]
)
def test_an_archive_that_is_damaged_is_refused_when_the_model_is_written(change) -> None:
    model = Model.from_bytes(change(with_archive({"a": b"x"})))
    model.root.description = "longer"
    with pytest.raises(ModelError, match="zip archive"):
        model.to_bytes()
