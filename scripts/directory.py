"""The directory of plugins: a file for each package, the checks that an entry passes, and what is made of all of them.

usage: python -m scripts.directory                     checks the entries, and writes the page and the data by which messages advise packages
       python -m scripts.directory --own               writes first what this repository's packages bring into their entries; all must be
                                                       installed
       python -m scripts.directory --new PACKAGE       prints the beginning of an entry for an installed package
       python -m scripts.directory --compare PACKAGE   compares the entry of an installed package with what it registers

directory/README.md says what an entry has.
"""

from __future__ import annotations

import argparse
import importlib.metadata as metadata
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from email.message import Message
from pathlib import Path
from typing import Any, cast

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from scripts.directory_page import page
from scripts.packages import version
from scripts.requirements import ROOT, tomllib

__all__ = ["BROUGHT", "DATA", "FOLDER", "PAGE", "brought", "data", "entries", "facts", "main", "problems", "text"]

FOLDER = ROOT / "directory"
DATA = ROOT / "core/src/oplet/plugins/known_packages.json"
PAGE = ROOT / "docs/directory.md"

#: What every entry says, in this order.
_SAID = ("package", "summary", "keeper", "source", "licence", "python", "oplet", "parity")
#: Lists of what a package brings, by which messages advise it; `builtin_ops` is a table besides.
BROUGHT = ("ops", "composites", "families", "delegates", "commands")
#: Registered only to be refused with a sentence: no package helps.
_REFUSED = frozenset(("Placeholder",))
#: With fewer characters a prefix would claim ops of other packages.
_SHORTEST_FAMILY = 4


def entries(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Return the entries of the directory by the packages' names."""
    found = (tomllib.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.toml")))
    return {entry["package"]: entry for entry in found}


def problems(folder: Path = FOLDER, root: Path = ROOT) -> list[str]:
    """Return a sentence for each thing that is wrong with an entry."""
    found: list[str] = []
    claimed: dict[tuple[str, str], str] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            entry = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            found.append(f"{path.name} is no TOML file: {error}.")
            continue
        wrong = list(_wrong(path, entry, root))
        found += [f"{path.name}: {sentence}" for sentence in wrong]
        if wrong or not entry.get("advised", True):
            continue
        for kind in BROUGHT:
            for name in entry.get(kind, ()):
                other = claimed.setdefault((kind, name), path.name)
                if other != path.name:
                    found.append(
                        f"{path.name}: {kind} has {name}, for which messages advise the package of {other} already; say advised = false."
                    )
    return found


def _wrong(path: Path, entry: Mapping[str, Any], root: Path) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong with one entry by itself."""
    kinds: dict[str, type] = {**dict.fromkeys(_SAID, str), **dict.fromkeys(BROUGHT, list), "builtin_ops": dict, "advised": bool}
    for key, value in entry.items():
        if key not in kinds:
            yield f"there is no field {key}; there are {', '.join(kinds)}."
        elif type(value) is not kinds[key]:
            yield f"{key} is to be of type {kinds[key].__name__}."
    for key in _SAID:
        if not entry.get(key):
            yield f"{key} is missing."
    said = {key: str(entry[key]) if isinstance(entry.get(key), str) else "" for key in _SAID}
    if said["package"] and (canonicalize_name(said["package"]) != said["package"] or path.name != f"{said['package']}.toml"):
        yield f"the file is to be named as the package is, {canonicalize_name(said['package'])}.toml, and package to be that name."
    for key, value in said.items():
        if value and ("\n" in value or "|" in value or len(value) > 240):
            yield f"{key} is to be one line of at most 240 characters, without a bar."
    if said["licence"]:
        try:
            canonicalize_license_expression(said["licence"])
        except InvalidLicenseExpression:
            yield f"licence is {said['licence']!r}, which is no SPDX expression, such as Apache-2.0."
    for key in ("python", "oplet"):
        try:
            SpecifierSet(said[key])
        except InvalidSpecifier:
            yield f"{key} is {said[key]!r}, which is no range of versions, such as >=0.1,<0.2."
    if said["source"] and not re.fullmatch(r"https://[\w.-]+/\S+", said["source"]):
        project = root / said["source"] / "pyproject.toml"
        if not re.fullmatch(r"plugins/\w+", said["source"]) or not project.exists():
            yield "source is to be an address, https://..., or a folder of this repository's plugins/."
        elif tomllib.loads(project.read_text("utf-8"))["project"]["name"] != said["package"]:
            yield f"source is {said['source']}, which is the folder of another package."
    elif said["package"] == "oplet" or (said["source"] and said["package"].startswith("oplet-")):
        yield "names that begin with oplet- are this project's own."
    yield from _wrong_names(entry)


def _wrong_names(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong with the names of what a package brings."""
    from oplet import BuiltinOperator

    for kind in BROUGHT:
        names = entry.get(kind, [])
        if not isinstance(names, list) or any(not isinstance(name, str) or not name.strip() for name in names):
            yield f"{kind} is to be a list of names."
        elif len(set(names)) < len(names):
            yield f"{kind} has a name twice."
    ops = entry.get("ops", [])
    for name in ops if isinstance(ops, list) else ():
        if name in BuiltinOperator.__members__:
            yield f"ops has {name}, which is a built-in operator; it belongs to builtin_ops."
    families = entry.get("families", [])
    for name in families if isinstance(families, list) else ():
        if isinstance(name, str) and len(name) < _SHORTEST_FAMILY:
            yield f"families has {name!r}, with which ops of other packages may begin; give at least {_SHORTEST_FAMILY} characters."
    builtin = entry.get("builtin_ops", {})
    for name, versions in builtin.items() if isinstance(builtin, dict) else ():
        if name not in BuiltinOperator.__members__:
            yield f"builtin_ops has {name}, which is no built-in operator."
        elif not isinstance(versions, str) or not re.fullmatch(r"\d+(-\d+)?", versions):
            yield f"builtin_ops has {name} = {versions!r}; give its versions, such as '1-4'."
    if str(entry.get("source", "")).startswith("https://") and not any(entry.get(kind) for kind in (*BROUGHT, "builtin_ops")):
        yield "it brings nothing: give ops, composites, families, delegates, commands or builtin_ops."


def data(found: Mapping[str, Mapping[str, Any]], oplet: str) -> str:
    """Return the data by which messages advise packages, a line for each.

    Args:
        found: entries by name.
        oplet: the version of oplet that advises them: no package is advised that does not say it works with this one.
    """
    lines = []
    for package, entry in sorted(found.items()):
        if not SpecifierSet(entry["oplet"]).contains(oplet, prereleases=True):
            continue
        kept: dict[str, Any] = {key: entry[key] for key in ("keeper", "source")}
        if entry.get("advised", True):
            kept |= {kind: entry[kind] for kind in BROUGHT if entry.get(kind)}
        lines.append(f"{json.dumps(package)}: {json.dumps(kept, ensure_ascii=False, separators=(',', ':'))}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def brought(points: Mapping[str, str]) -> dict[str, Any]:
    """Return what the plugins at these entry points (their names and modules) register.

    Raises:
        SystemExit: one of them fails.
    """
    from importlib_metadata import EntryPoint

    from oplet import BuiltinOperator, Composite, PluginManager

    manager = PluginManager(entry_points=[EntryPoint(name, value, "oplet") for name, value in points.items()])
    for plugin in manager.plugins():
        if plugin.error:
            raise SystemExit(f"The plugin {plugin.name} of {plugin.module} fails: {plugin.error}.")
    ranges: dict[Any, list[int]] = {}
    for entry in manager.resolver().entries():
        ranges.setdefault(entry.op, []).extend((entry.min_version, entry.max_version))
    found: dict[str, Any] = {
        "ops": sorted(op for op in ranges if isinstance(op, str) and op not in _REFUSED),
        "composites": sorted(op.name for op in ranges if isinstance(op, Composite)),
        "delegates": sorted(entry.name for entry in manager.registry().entries()),
        "commands": sorted(entry.name for entry in manager.commands().entries()),
    }
    if builtin := {op.name: versions for op, versions in ranges.items() if isinstance(op, BuiltinOperator)}:
        found["builtin_ops"] = {name: _range(builtin[name]) for name in sorted(builtin)}
    return {key: value for key, value in found.items() if value}


def _range(versions: list[int]) -> str:
    first, last = min(versions), max(versions)
    return str(first) if first == last else f"{first}-{last}"


def facts(folder: Path) -> dict[str, Any]:
    """Return what a package of this repository says of itself and registers; it must be installed, or on the path."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return {
        "package": project["name"],
        "summary": project["description"],
        "keeper": "the oplet project",
        "source": folder.relative_to(ROOT).as_posix(),
        "licence": project["license"],
        "python": project["requires-python"],
        "oplet": _oplet_of(project["dependencies"]),
        **brought(project.get("entry-points", {}).get("oplet", {})),
    }


def _installed(package: str) -> dict[str, Any]:
    """Return what an installed package says of itself and registers, with empty fields where only its authors know."""
    try:
        distribution = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        raise SystemExit(f"{package} is not installed: pip install {package}, or its folder.") from None
    about = cast(Message, distribution.metadata)  # the actual class, of which the declared protocol has fewer methods
    urls = [value.partition(",")[2].strip() for value in about.get_all("Project-URL") or ()]
    return {
        "package": canonicalize_name(str(about["Name"])),
        "summary": about.get("Summary") or "",
        "keeper": about.get("Author") or about.get("Maintainer") or about.get("Author-email") or "",
        "source": next((url for url in urls if url.startswith("https://")), ""),
        "licence": about.get("License-Expression") or "",
        "python": about.get("Requires-Python") or "",
        "oplet": _oplet_of(distribution.requires or ()),
        "parity": "",
        **brought({point.name: point.value for point in distribution.entry_points if point.group == "oplet"}),
    }


def _oplet_of(requirements: Any) -> str:
    """Return the range of oplet's versions among requirements: of its core, or of all that `pip install oplet` brings."""
    from packaging.requirements import Requirement

    found = [str(r.specifier) for r in map(Requirement, requirements) if r.name in ("oplet-core", "oplet")]
    return ",".join(sorted(found[0].split(","), reverse=True)) if found else ""


def text(entry: Mapping[str, Any]) -> str:
    """Return an entry as the text of its file."""

    def value(of: Any) -> str:
        return json.dumps(of, ensure_ascii=False)

    lines = [f"{key} = {value(entry[key])}" for key in _SAID if key in entry]
    if "advised" in entry:
        lines.append(f"advised = {value(entry['advised'])}")
    for kind in BROUGHT:
        if names := entry.get(kind):
            line = f"{kind} = [{', '.join(map(value, names))}]"
            if len(line) > 120:
                inner = textwrap.wrap(", ".join(map(value, names)) + ",", 116, break_long_words=False, break_on_hyphens=False)
                line = "\n".join([f"{kind} = [", *(f"    {part}" for part in inner), "]"])
            lines.append(line)
    if builtin := entry.get("builtin_ops"):
        lines += ["", "[builtin_ops]", *(f"{name} = {value(versions)}" for name, versions in builtin.items())]
    return "\n".join([*lines, ""])


def _write_own() -> None:
    """Write what the packages of this repository bring into their entries; what only people know stays."""
    for project in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        found = facts(project.parent)
        path = FOLDER / f"{found['package']}.toml"
        there: dict[str, Any] = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
        kept: dict[str, Any] = {key: there[key] for key in ("keeper", "parity", "advised", "families") if key in there}
        path.write_text(text({**found, **kept}), "utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Check the entries and write what is made of them, or help with one.

    Raises:
        SystemExit: an entry is wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m scripts.directory", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--own", action="store_true", help="write what this repository's packages bring into their entries")
    parser.add_argument("--new", metavar="PACKAGE", help="print the beginning of an entry for an installed package")
    parser.add_argument("--compare", metavar="PACKAGE", help="compare an installed package with its entry")
    given = parser.parse_args(arguments)
    if given.new:
        print(text(_installed(given.new)), end="")
        return
    if given.own:
        _write_own()
    if wrong := problems():
        sys.exit("\n".join(wrong))
    found = entries()
    if given.compare:
        name = canonicalize_name(given.compare)
        if name not in found:
            sys.exit(f"directory/ has no {name}.toml: python -m scripts.directory --new {name} prints its beginning.")
        told, is_so = found[name], _installed(given.compare)
        registered = [kind for kind in BROUGHT if kind != "families"]  # which nobody but its author knows
        differ = [key for key in ("oplet", "python", *registered, "builtin_ops") if told.get(key) != is_so.get(key)]
        if differ:
            sys.exit("\n".join(f"{name}.toml: {key} is {told.get(key)}, and the package has {is_so.get(key)}." for key in differ))
        return
    DATA.write_text(data(found, version()), "utf-8")
    PAGE.write_text(page(found, version()), "utf-8")


if __name__ == "__main__":
    main()
