"""The documentation site builds without a warning, loads nothing from elsewhere, and has every public name, command and option."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import zlib
from html import unescape
from pathlib import Path

import pytest
from tests.places import ROOT

import oplet

pytest.importorskip("mkdocs", reason="requirements-site.txt is not installed")

import griffe
import typer
import yaml
from scripts.site import gallery
from scripts.site.links import relinked
from scripts.site.pages import GUIDES, packages
from scripts.site.plugin_commands import plugin_commands

from oplet_tools.cli.app import app

QUIET = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, **QUIET, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def names(site: Path) -> set[str]:
    """All names that the reference tells."""
    listing = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split()[0] for line in zlib.decompress(listing).decode().splitlines()}


def test_every_public_name_of_oplet_is_told(names: set[str]) -> None:
    assert {f"oplet.{name}" for name in oplet.__all__ if name != "__version__"} <= names


@pytest.mark.parametrize("module", ["oplet.errors", "oplet.texts", "oplet.toolkit", "oplet_testing"])
def test_every_public_name_of_a_public_module_is_told(module: str, names: set[str]) -> None:
    public = importlib.import_module(module).__all__
    assert public
    assert {f"{module}.{name}" for name in public} <= names


def test_every_public_function_of_the_kit_for_kernels_is_told(names: set[str]) -> None:
    kit = griffe.load("oplet.kernels", search_paths=[ROOT / "core" / "src"])
    public = {
        f"{module.path}.{name}"
        for module in kit.modules.values()
        for name in module.exports or ()
        if not module[name].is_alias and module[name].docstring is not None
    }
    assert len(public) > 40
    assert public <= names


def test_every_package_has_a_page_with_its_public_names(site: Path, names: set[str]) -> None:
    found = packages()
    assert len(found) > 10
    for package, folder in found.items():
        assert (site / "packages" / f"{package}.html").is_file()
        if folder.parent.name == "plugins":
            module = griffe.load(package.replace("-", "_"), search_paths=[folder / "src"], allow_inspection=False)
            assert {f"{module.path}.{name}" for name in module.exports or ()} <= names


def test_every_command_has_a_page_with_each_of_its_options(site: Path) -> None:
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="oplet")
    listed = command.list_commands(context)  # type: ignore[attr-defined]
    assert len(listed) > 10
    for name in listed:
        page = unescape((site / "reference" / "commands" / f"{name}.html").read_text("utf-8"))
        for parameter in command.get_command(context, name).params:  # type: ignore[attr-defined]
            for option in parameter.opts if parameter.param_type_name == "option" and not parameter.hidden else ():
                assert option in page, f"{name} {option}"


def test_every_command_of_a_plugin_has_a_page_with_each_of_its_options(site: Path) -> None:
    found = plugin_commands(ROOT)
    assert {"native", "serve"} <= set(found)
    for name, command in found.items():
        page = unescape((site / "reference" / "commands" / f"{name}.html").read_text("utf-8"))
        for each in (command, *getattr(command, "commands", {}).values()):
            for parameter in each.params:
                for option in parameter.opts if parameter.param_type_name == "option" and not parameter.hidden else ():
                    assert option in page, f"{name} {option}"


def test_the_search_finds_guides_first_and_no_page_that_is_none(site: Path) -> None:
    entries = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    boosts = {entry["location"]: entry.get("boost", 1) for entry in entries if "#" not in entry["location"]}
    assert "SUMMARY.html" not in boosts
    for word, page in (("custom op", "tutorial.html"), ("install", "index.html"), ("multithreading", "predictor.html")):
        found = {e["location"].partition("#")[0] for e in entries if word in f"{e['title']} {e['text']}".lower()}
        assert page in found, word
        rivals = [other for other in found if other.startswith(("reference/", "packages/", "decisions/", "changelog"))]
        assert all(boosts[page] > 2 * boosts.get(other, 1) for other in rivals), word


def test_signatures_are_broken_into_lines(site: Path) -> None:
    text = (site / "reference" / "running.html").read_text("utf-8")
    [signature] = re.findall(r'id="oplet\.Interpreter".*?(<div class="[^"]*doc-signature.*?</div>)', text, re.DOTALL)[:1]
    lines = unescape(re.sub(r"<[^>]+>", "", signature)).splitlines()
    assert len(lines) > 10
    assert max(map(len, lines)) <= 100
    assert text.index('id="oplet.interpreter.SignatureRunner"') < text.index('id="oplet.interpreter.InterpreterWithCustomOps"')
    tasks = (site / "reference" / "oplet_predictor-asynchronous.html").read_text("utf-8")
    assert 'id="oplet_predictor.asynchronous.async_runner.AsyncSignatureRunner"' in tasks


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        text = page.read_text("utf-8")
        loaded = re.findall(
            r"<(?:script|img|iframe|link(?=[^>]*rel=\"(?:stylesheet|preconnect|icon)))[^>]*?(?:src|href)=\"([^\"]+)", text
        )
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text("utf-8")), style


def test_every_page_of_docs_is_in_the_navigation(site: Path) -> None:
    index = (site / "index.html").read_text("utf-8")
    for listed in GUIDES.values():
        for page in listed:
            if (ROOT / "docs" / page).exists():
                assert f'href="{page.removesuffix(".md").replace("README", "index")}.html"' in index, page


@pytest.mark.parametrize(
    ("text", "source", "page", "wanted"),
    [
        ("[a](docs/values.md#x)", "README.md", "index.md", "[a](values.md#x)"),
        ("[a](../README.md#install)", "docs/values.md", "values.md", "[a](index.md#install)"),
        (
            "[`b`](../flex_delegate/README.md)",
            "plugins/flex_ops/README.md",
            "packages/oplet-flex-ops.md",
            "[`b`](oplet-flex-delegate.md)",
        ),
        ("[a](https://example.com/x)", "README.md", "index.md", "[a](https://example.com/x)"),
        ("[a](scripts/site.sh)", "README.md", "index.md", "a"),
        ("```\n[a](docs/values.md)\n```", "README.md", "index.md", "```\n[a](docs/values.md)\n```"),
        ("[a](gone.md)", "docs/values.md", "values.md", "[a](gone.md)"),
        ("![a](docs/gallery/run.svg)", "README.md", "index.md", "![a](gallery/run.svg)"),
        ("![a](gallery/run.svg)", "docs/gallery.md", "gallery.md", "![a](gallery/run.svg)"),
    ],
)
def test_links_lead_to_pages(text: str, source: str, page: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPLET_REPOSITORY_URL", raising=False)
    assert relinked(text, source, page) == wanted


def test_files_that_are_no_pages_are_shown_in_the_repository_where_it_has_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPLET_REPOSITORY_URL", "https://example.com/o/")
    assert relinked("[a](scripts/site.sh)", "README.md", "index.md") == "[a](https://example.com/o/blob/main/scripts/site.sh)"


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    assert settings["strict"] is True
    assert set(settings["validation"]["links"].values()) == {"warn"}
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# x\n\n[gone](gone.md)\n")
    kept = {name: settings[name] for name in ("site_name", "strict", "validation", "use_directory_urls")}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(kept))
    command = [sys.executable, "-m", "mkdocs", "build"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **QUIET}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "gone.md" in done.stderr


def texts(picture: str) -> list[str]:
    """What a picture says, without spaces, which pictures may split, and without what depends on the processor: fractions, of which some
    are errors, and the node with the largest one.
    """
    said = [re.sub(r"\s", "", unescape(text)) for text in re.findall(r"<text[^>]*>([^<]*)</text>", picture)]
    end = next((place for place, text in enumerate(said) if text.startswith("eachnodebyitself")), len(said))
    return [re.sub(r"\d+\.\d+(e-\d+)?|\d+e-\d+", "#", text) for text in said[:end]]


def test_the_gallery_shows_what_the_commands_print_today(tmp_path: Path) -> None:
    for package in ("oplet_builtin_ops", "oplet_example_delegate"):
        pytest.importorskip(package)
    gallery.main(tmp_path)
    page = (ROOT / "docs" / "gallery.md").read_text("utf-8")
    for name in (*gallery.TERMINALS, *gallery.SESSIONS, *gallery.PICTURES):
        kept = (ROOT / "docs" / "gallery" / f"{name}.svg").read_text("utf-8")
        assert f"(gallery/{name}.svg)" in page
        assert "http://" not in kept.replace("http://www.w3.org/", "")
        assert len(texts(kept)) > 5
        assert texts(kept) == texts((tmp_path / f"{name}.svg").read_text("utf-8")), "run python -m scripts.site.gallery"
