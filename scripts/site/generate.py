"""The pages that mkdocs-gen-files makes: the reference of names and commands, files beside docs/, and the navigation."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import griffe
import mkdocs_gen_files
import typer
from typer.cli import get_docs_for_click

import oplet.interpreter
from oplet_tools.cli.app import app
from scripts.site.links import relinked
from scripts.site.pages import BESIDE, GUIDES, ROOT, packages, shown_at
from scripts.site.plugin_commands import plugin_commands
from scripts.site.tryout import files

#: Where each public name of `oplet` is told, by the room that it lives in; `generate` refuses a room that is not here.
_ROOMS = {
    "runtime": ("running", "Running models"),
    "interpreter": ("running", "Running models"),
    "ops": ("operators", "Operators"),
    "delegates": ("delegates", "Delegates"),
    "plugins": ("plugins", "Plugins"),
    "hookimpl": ("plugins", "Plugins"),
    "model": ("models", "Models"),
    "schema": ("models", "Models"),
}

#: Names that stand first on their pages.
_FIRST = (
    "Interpreter",
    "SignatureRunner",
    "load_delegate",
    "Limits",
    "Registration",
    "hookimpl",
    "Delegate",
    "SimpleDelegate",
    "DelegateKernel",
    "Model",
    "ModelBuilder",
    "PluginManager",
)

#: Public modules of the core beside `oplet` itself, each with its page.
_MODULES = (
    "oplet.errors",
    "oplet_testing",
    "oplet_predictor.asynchronous",
    "oplet.kernels",
    "oplet.schema",
    "oplet.toolkit",
    "oplet.versions",
    "oplet.texts",
)


def main() -> None:
    """Make the pages."""
    navigation = ["* [Getting started](index.md)"]
    for name, page in BESIDE.items():
        if (ROOT / name).exists():
            _write(page, relinked((ROOT / name).read_text("utf-8"), name, page))
    for group, listed in GUIDES.items():
        there = [name for name in listed if (ROOT / "docs" / name).exists()]
        navigation += [f"* {group}", *(f"    * [{_entry(name)}]({name})" for name in there)]
    missing = {page for path, page in shown_at().items() if path.startswith("docs/")} - {
        n for names in GUIDES.values() for n in names
    }
    if missing:
        raise SystemExit(f"scripts/site/pages.py has no place for {', '.join(sorted(missing))}.")
    for name, data in files().items():
        with mkdocs_gen_files.open(f"try/{name}", "wb") as file:
            file.write(data)
    navigation += ["* Packages", *_package_pages()]
    navigation += ["* Reference", *_name_pages(), *_module_pages(), *_command_pages()]
    navigation += [
        "* Project",
        "    * [Changes](changelog.md)",
        "    * [Contributing](contributing.md)",
        "    * [Adding a package to the directory](directory-entries.md)",
        "    * [Code of conduct](code-of-conduct.md)",
        "    * [Security](security.md)",
    ]
    _write("SUMMARY.md", "\n".join(navigation) + "\n")


def _write(page: str, text: str) -> None:
    with mkdocs_gen_files.open(page, "w") as file:
        file.write(text)


def _entry(name: str) -> str:
    """What the navigation calls a page: its title; a decision by its number and file's name, as its title is a sentence."""
    number, _, words = Path(name).stem.partition("-")
    if number.isdecimal():
        return f"{int(number)}. {words.replace('-', ' ').capitalize()}"
    return _title((ROOT / "docs" / name).read_text("utf-8"))


def _title(text: str) -> str:
    return next(line[2:].strip() for line in text.splitlines() if line.startswith("# "))


def _package_pages() -> Iterator[str]:
    for name, folder in packages().items():
        readme = folder / "README.md"
        page = f"packages/{name}.md"
        text = relinked(readme.read_text("utf-8"), str(readme.relative_to(ROOT)), page)
        names = _exports(name.replace("-", "_"), folder) if folder.parent.name == "plugins" else []
        if names:
            text += "\n## Reference\n\n" + "".join(f"::: {each}\n\n" for each in names)
        _write(page, text)
        yield f"    * [{name}]({page})"


def _exports(module: str, folder: Path) -> list[str]:
    """The public names of a plugin, which is read, not imported: what it stands on need not be installed."""
    found = griffe.load(module, search_paths=[folder / "src"], allow_inspection=False)
    return [f"{module}.{name}" for name in found.exports or ()]


def _name_pages() -> Iterator[str]:
    titles: dict[str, str] = {}
    names: dict[str, list[str]] = {}
    for name in oplet.__all__:
        if name == "__version__":
            continue
        page, title = _ROOMS[oplet._HOMES[name].split(".")[1]]
        titles[page] = title
        names.setdefault(page, []).append(f"oplet.{name}")
    names["running"] += [f"oplet.interpreter.{name}" for name in oplet.interpreter.__all__ if name not in oplet.__all__]
    for page, title in titles.items():
        entries = "".join(f"::: {name}\n\n" for name in sorted(names[page], key=_place))
        _write(
            f"reference/{page}.md",
            f"# {title}\n\nPublic names of `oplet` and `oplet.interpreter`; each is imported from there.\n\n{entries}",
        )
        yield f"    * [{title}](reference/{page}.md)"


def _place(name: str) -> tuple[int, str]:
    """The place of a name on its page: what most programs need first, then all others by name."""
    name = name.rpartition(".")[2]
    return _FIRST.index(name) if name in _FIRST else len(_FIRST), name.lower()


def _module_pages() -> Iterator[str]:
    for name in _MODULES:
        module = importlib.import_module(name)
        text = f"# `{name}`\n\n"
        if getattr(module, "__all__", ()):
            text += "".join(f"::: {name}.{each}\n\n" for each in sorted(module.__all__, key=str.lower))
        elif hasattr(module, "__path__"):
            text += (module.__doc__ or "") + "\n\n" + "".join(_module(each) for each in _below(module))
        else:
            text += _module(name)
        page = f"reference/{name.replace('.', '-')}.md"
        _write(page, text)
        yield f"    * [{name}]({page})"


def _below(package: ModuleType) -> Iterator[str]:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.name.rpartition(".")[2].startswith("_"):
            yield found.name


def _module(name: str) -> str:
    return f"::: {name}\n    options:\n      members_order: alphabetical\n\n"


def _command_pages() -> Iterator[str]:
    yield "    * Commands"
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="oplet")
    for name in command.list_commands(context):  # type: ignore[attr-defined]
        below = command.get_command(context, name)  # type: ignore[attr-defined]
        text = get_docs_for_click(obj=below, ctx=context, name=name, call_prefix="oplet")
        page = f"reference/commands/{name}.md"
        _write(page, text.replace("## `", "# `", 1) if text.startswith("##") else text)
        yield f"        * [oplet {name}]({page})"
    for name, below in sorted(plugin_commands(ROOT).items()):
        page = f"reference/commands/{name}.md"
        text = get_docs_for_click(obj=below, ctx=context, name=name, call_prefix="oplet")
        _write(page, text.replace("## `", "# `", 1) if text.startswith("##") else text)
        yield f"        * [oplet {name}]({page})"


main()
