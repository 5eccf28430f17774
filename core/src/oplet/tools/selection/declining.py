"""Whether a plugin's kernels may decline nodes, as its source says: then whoever is next has to be there too."""

from __future__ import annotations

import functools
import re

from oplet.ops.serving.resolver import ResolverEntry
from oplet.tools.building.error import BuildError
from oplet.tools.building.packages import find_package

__all__ = ["may_decline"]

#: Who mentions one of these leaves nodes to the next provider.
_DECLINES = re.compile(r"\b(?:decline|Declined|NodeLimits|TypeLimit|limited)\b")


#: What a module imports, by its full name.
_IMPORTS = re.compile(r"^\s*(?:from|import)\s+([\w.]+)(?:\s+import\s+\(?([\w, \n]+))?", re.MULTILINE)


def may_decline(entry: ResolverEntry) -> bool:
    """Whether a provider may leave nodes to the next.

    It may if the kernel's module, or one of the same package that this one imports, mentions what does that; if these cannot be
    told or read, and if the registration is an object, any module of the package counts.
    """
    if entry.limit is not None:
        return True
    target = entry.target
    return _declines(target.partition(":")[0] if isinstance(target, str) else "", entry.provenance.module.partition(".")[0])


@functools.cache
def _declines(kernel: str, top: str) -> bool:
    top = kernel.partition(".")[0] or top
    try:
        package = find_package(top)
    except (BuildError, ImportError, ValueError):
        return True
    if kernel not in package.modules:
        return _DECLINES.search(package.texts) is not None
    seen: set[str] = set()
    waiting = {kernel}
    while waiting:
        module = waiting.pop()
        seen.add(module)
        path = package.modules[module]
        text = "" if path is None else path.read_text(encoding="utf-8-sig", errors="replace")
        if _DECLINES.search(text):
            return True
        for name, members in _IMPORTS.findall(text):
            if name.startswith(".") or name == top:
                return _DECLINES.search(package.texts) is not None
            named = {name, *(f"{name}.{member.split()[0]}" for member in members.split(",") if member.strip())}
            waiting |= (named & package.modules.keys()) - seen
    return False
