"""Which modules import which, read from the sources: inside functions and for type checkers too."""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterator
from pathlib import Path

from scripts.syntax import nodes, parsed

__all__ = ["import_graph", "imports", "knots", "modules"]


def imports(path: Path, among: Collection[str] = ()) -> Iterator[str]:
    """Yield the modules that a file imports.

    Args:
        path: the file.
        among: modules that are known, so that `from package import module` is told from `from module import name`.
    """
    for module, name in _imported(path):
        yield f"{module}.{name}" if name and f"{module}.{name}" in among else module


@functools.cache
def _imported(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the modules that a file imports, each with the name that it takes of it, "" for the module itself."""
    tree = parsed(path)
    found = [(alias.name, "") for node in nodes(tree, ast.Import) for alias in node.names]
    for node in nodes(tree, ast.ImportFrom):
        if node.module and not node.level:
            found += [(node.module, alias.name) for alias in node.names]
    return tuple(found)


def modules(package: Path) -> dict[str, Path]:
    """Return the modules of a package by their names."""
    return {
        ".".join([package.name, *path.relative_to(package).with_suffix("").parts]).removesuffix(".__init__"): path
        for path in package.rglob("*.py")
    }


@functools.cache
def import_graph(package: Path) -> dict[str, set[str]]:
    """Return which modules of the package each one imports."""
    known = modules(package)
    return {name: {m for m in imports(path, known) if m in known and m != name} for name, path in known.items()}


def knots(package: Path) -> list[list[str]]:
    """Return the groups of modules of the package that import one another in circles, each sorted."""
    graph = import_graph(package)

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            more = graph[waiting.pop()] - seen
            seen |= more
            waiting += more
        return seen

    reach = {name: reached(name) for name in graph}
    found = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph if name in reach[name]}
    return sorted(sorted(group) for group in found)
