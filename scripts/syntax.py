"""Syntax trees of the repository's files, which many rules about them read: a file is parsed once, and its nodes are found once."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path
from typing import Any, TypeVar, overload

__all__ = ["dotted", "forget", "nodes", "parsed"]

A = TypeVar("A", bound=ast.AST)
B = TypeVar("B", bound=ast.AST)
#: Where a tree keeps its nodes, by class: an attribute that is none of its fields.
_BY_CLASS = "nodes_by_class"


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file, the same one each time, until `forget`."""
    # Nothing that parsing makes is garbage, and looking for some takes twice as long as parsing.
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        if collects:
            gc.enable()


def forget() -> None:
    """Let all trees go: a process that keeps them collects its garbage slowly."""
    parsed.cache_clear()


@overload
def nodes(tree: ast.AST, kind: type[A], /) -> list[A]: ...
@overload
def nodes(tree: ast.AST, kind: type[A], other: type[B], /) -> list[A | B]: ...
def nodes(tree: ast.AST, *kinds: type[ast.AST]) -> list[Any]:
    """Return the nodes of a whole tree that are of one of these classes, those of each class as `ast.walk` finds them."""
    found: dict[type[ast.AST], list[ast.AST]] | None = getattr(tree, _BY_CLASS, None)
    if found is None:
        found = {}
        for node in ast.walk(tree):
            found.setdefault(type(node), []).append(node)
        setattr(tree, _BY_CLASS, found)
    return [node for kind in kinds for node in found.get(kind, ())]


def dotted(node: ast.AST) -> str:
    """Return "a.b.c" for a name or an attribute, as `ast.unparse` does; "" for anything else."""
    parts, at = [], node
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    if isinstance(at, ast.Name):
        return ".".join([at.id, *reversed(parts)])
    return ast.unparse(node) if parts else ""
