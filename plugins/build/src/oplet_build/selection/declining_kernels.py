"""Detection, in a plugin's source, of kernels that may decline nodes: the next kernel for the op must then be included too."""

from __future__ import annotations

import ast
import functools
import re

from oplet.toolkit import ResolverEntry
from oplet_build.building.distributions import find_package
from oplet_build.building.error import BuildError

__all__ = ["may_decline"]

#: Code that names one of these may leave nodes to the next provider; words in docstrings and comments do not count.
_DECLINES = frozenset({"decline", "Declined", "NodeLimits", "TypeLimit"})


#: Import statements: `from NAME import MEMBERS` and `import NAMES`.
_FROM = re.compile(r"^[ \t]*from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import\s+([^\n]*)", re.MULTILINE)


def may_decline(entry: ResolverEntry) -> bool:
    """Return whether a kernel may decline nodes, which then go to the next package with a kernel for the op.

    It may if its module, or a module of the same package that it imports, mentions declining by name (`decline`, `TypeLimit`
    ...). If these modules are unknown or cannot be read, or if the registration is an object, all modules of the package count.
    """
    if entry.limit is not None:
        return True
    target = entry.target
    return _declines(target.partition(":")[0] if isinstance(target, str) else "", entry.provenance.module.partition(".")[0])


@functools.cache  # many kernels of a package ask of all its sources
def _names_declining(source: str) -> bool:
    """Return whether code uses or imports one of the names; True where they occur in what is no Python."""
    if not any(name in source for name in _DECLINES):  # parsing takes much longer
        return False
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return True
    used = {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    }
    return not _DECLINES.isdisjoint(used | {node.name for node in nodes if isinstance(node, ast.alias)})


@functools.cache
def _declines(kernel: str, top: str) -> bool:
    top = kernel.partition(".")[0] or top
    try:
        package = find_package(top)
    except (BuildError, ImportError, ValueError):
        return True
    if kernel not in package.modules:
        return _names_declining(package.texts)
    seen: set[str] = set()
    waiting = {kernel}
    while waiting:
        module = waiting.pop()
        seen.add(module)
        path = package.modules[module]
        text = "" if path is None else path.read_text(encoding="utf-8-sig", errors="replace")
        if _names_declining(text):
            return True
        named = {name for names in _IMPORT.findall(text) for name in re.findall(r"[\w.]+", names)}
        for name, members in _FROM.findall(text):
            if name.startswith(".") or name == top:
                return _names_declining(package.texts)
            named |= {name, *(f"{name}.{member}" for member in re.findall(r"\w+", members))}
        if top in named:
            return _names_declining(package.texts)
        waiting |= (named & package.modules.keys()) - seen
    return False
