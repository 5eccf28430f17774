"""Rewriting of a module's source when packages are renamed: its imports, and the strings that name modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from oplet_build.building.cutting.syntax import syntax_nodes
from oplet_build.building.distributions import Package

__all__ = ["rewrite_imports"]

#: Functions whose argument is a package's name, even if it is a single word.
_TAKES_PACKAGE = frozenset(
    (
        "files",
        "import_module",
        "__import__",
        "get_data",
        "read_text",
        "read_binary",
        "open_text",
        "open_binary",
        "path",
        "is_resource",
        "contents",
        "as_file",
    )
)


def rewrite_imports(text: str, packages: Mapping[str, Package], homes: Mapping[str, str]) -> str:
    """Return a module's source with renamed packages; everything else stays as it is.

    Args:
        text: the source.
        packages: the packages that are renamed, by their old names.
        homes: their new names: {"oplet_atan_op": "my_app_ops._oplet_atan_op"}.
    """
    data = text.encode().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    tree = ast.parse(data)
    # Column offsets of the ast module count bytes.
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    edits = []
    for node, new in _changes(tree, packages, homes):
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        edits.append((first, last, new.encode()))
    for first, last, replacement in sorted(edits, reverse=True):
        data = data[:first] + replacement + data[last:]
    return data.decode()


def _changes(
    tree: ast.Module, packages: Mapping[str, Package], homes: Mapping[str, str]
) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Yield the syntax nodes that name a renamed package, each with its new source; no node is inside another."""
    inner: set[int] = set()
    named_packages = _named_packages(tree)
    for node in syntax_nodes(tree):
        if id(node) in inner:
            continue
        if isinstance(node, ast.Import) and any(_top(alias.name) in homes for alias in node.names):
            yield node, "; ".join(_import(alias, homes) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and _top(node.module or "") in homes:
            yield node, ast.unparse(ast.ImportFrom(_moved(node.module or "", homes), node.names, 0))
        elif isinstance(node, ast.JoinedStr):
            inner.update(id(part) for part in syntax_nodes(node))
            changed = _move_start(node, packages, homes)
            for part in syntax_nodes(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and part is not node.values[0]:
                    package = packages.get(_top(part.value.partition(":")[0]))
                    if package is not None and package.reference(part.value) is not None:
                        part.value, changed = _moved(part.value, homes), True
            if changed:
                yield node, ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            package = packages.get(_top(node.value.partition(":")[0]))
            if package is not None and (package.reference(node.value) is not None or id(node) in named_packages):
                yield node, repr(_moved(node.value, homes))


def _named_packages(tree: ast.Module) -> set[int]:
    calls = (node for node in syntax_nodes(tree) if isinstance(node, ast.Call))
    return {
        id(node.args[0])
        for node in calls
        if node.args and (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) in _TAKES_PACKAGE
    }


def _move_start(node: ast.JoinedStr, packages: Mapping[str, Package], homes: Mapping[str, str]) -> bool:
    """Rename the package at the start of an f-string such as f"package.module.{name}"; return whether it named one."""
    first = node.values[0] if node.values else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return False
    match = re.match(r"(\w+)(?:\.\w+)*[.:]", first.value)
    package = packages.get(match[1]) if match else None
    if match is None or package is None or match[0].rstrip(".:") not in package.modules:
        return False
    first.value = _moved(first.value, homes)
    return True


def _import(alias: ast.alias, homes: Mapping[str, str]) -> str:
    top = _top(alias.name)
    if top not in homes:
        return ast.unparse(ast.Import([alias]))
    moved = _moved(alias.name, homes)
    if alias.asname:
        return f"import {moved} as {alias.asname}"
    # `import package.module` binds the name `package`.
    home, _, last = homes[top].rpartition(".")
    binding = f"from {home} import {last} as {top}" if home else f"import {last} as {top}"
    return f"import {moved}; {binding}" if moved != homes[top] else binding


def _top(name: str) -> str:
    return name.partition(".")[0]


def _moved(name: str, homes: Mapping[str, str]) -> str:
    top = re.split(r"[.:]", name, maxsplit=1)[0]
    return homes[top] + name[len(top) :]
