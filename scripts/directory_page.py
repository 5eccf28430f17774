"""The page that shows the directory of plugins, docs/directory.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.specifiers import SpecifierSet

__all__ = ["page"]

_INTRODUCTION = """\
# A directory of plugins

Packages that bring operators, delegates or commands to oplet: what each brings, for which versions, how its numbers stand to LiteRT's, and
who keeps it. The list is the folder `directory/` of the repository, a small file for each package;
[how to add one](../directory/README.md) takes one file. Where a model has an operator that nothing installed serves, `oplet doctor` and error
messages advise packages of this list, and no others.
"""
#: How what packages bring is called, one and several of it.
_WORDS = {
    "builtin_ops": ("built-in operator", "built-in operators"),
    "ops": ("custom op", "custom ops"),
    "composites": ("composite", "composites"),
    "families": ("family of custom ops", "families of custom ops"),
    "delegates": ("delegate", "delegates"),
    "commands": ("command", "commands"),
}
#: So many names stand on their line; more are folded away.
_SHOWN = 12


def page(entries: Mapping[str, Mapping[str, Any]], oplet: str) -> str:
    """Return the text of the page.

    Args:
        entries: the directory's entries by name.
        oplet: the version of oplet.
    """
    lines = [_INTRODUCTION, "| package | what it is | brings |", "|---|---|---|"]
    for package, entry in sorted(entries.items()):
        counts = ", ".join(_count(kind, entry[kind]) for kind in _WORDS if entry.get(kind))
        lines.append(f"| [{package}](#{package}) | {entry['summary']} | {counts or '-'} |")
    for package, entry in sorted(entries.items()):
        lines += ["", f"## {package}", "", f"{entry['summary']}.", "", *_details(entry, oplet)]
    return "\n".join([*lines, ""])


def _count(kind: str, names: Any) -> str:
    return f"{len(names)} {_WORDS[kind][len(names) > 1]}"


def _details(entry: Mapping[str, Any], oplet: str) -> Iterator[str]:
    source = entry["source"]
    shown = f"[{source}](../{source}/README.md)" if source.startswith("plugins/") else f"<{source}>"
    works = SpecifierSet(entry["oplet"]).contains(oplet, prereleases=True)
    yield f"- **Kept by** {entry['keeper']}: {shown}, {entry['licence']}"
    yield f"- **Versions**: oplet {entry['oplet']}, Python {entry['python']}" + (
        "" if works else f"; it does not say that it works with oplet {oplet}"
    )
    yield f"- **Beside LiteRT**: {entry['parity']}"
    folded = []
    for kind in _WORDS:
        names = entry.get(kind, ())
        if not names:
            continue
        told = ", ".join(f"`{name}` {names[name]}" if isinstance(names, dict) else f"`{name}`" for name in names)
        if len(names) <= _SHOWN:
            yield f"- **{_count(kind, names)}**: {told}"
        else:
            yield f"- **{_count(kind, names)}**"
            with_versions = " and their versions" if isinstance(names, dict) else ""
            folded += [
                "",
                f'<details markdown="1"><summary>{_count(kind, names)}{with_versions}</summary>',
                "",
                told,
                "",
                "</details>",
            ]
    if not entry.get("advised", True):
        yield "- Messages advise another package for these."
    yield from folded
