"""Packages that are known to provide an operator, a delegate or a command, for advice in messages.

They are those of the directory of plugins (`directory/` in the repository); `known_packages.json` is made of it by
`python -m scripts.directory`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from oplet.ops.serving.provenance import Composite
from oplet.ops.serving.registration import Op

__all__ = [
    "BUILTIN_OPS",
    "NAMES_ARE_OURS",
    "NATIVE_OPS",
    "family_distribution",
    "is_ours",
    "known",
    "known_command",
    "known_delegate",
    "known_distribution",
    "package_origin",
]

#: The package of the built-in operators.
BUILTIN_OPS: Final = "oplet-builtin-ops"

#: The package that opens shared libraries of operators.
NATIVE_OPS: Final = "oplet-native-ops"

#: Whether the names of this project's packages belong to it on PyPI. Until they do, no message advises to ask an index for one of them, where it
#: may be anybody's; RELEASING.md says who changes this, and when.
NAMES_ARE_OURS = False

#: Where a package of this project has its source; an address is another project's.
_FOLDERS: Final = "plugins/"


@lru_cache(maxsize=1)
def known() -> dict[str, dict[str, Any]]:
    """Return the directory of known packages: for each its "source", "keeper" (maintainer) and what it provides, as lists of
    names: "ops", "composites", "families", "delegates", "commands".
    """
    import json
    from pkgutil import get_data  # imported late: running a model does not need it

    found: dict[str, dict[str, Any]] = json.loads(get_data(__name__, "known_packages.json") or b"{}")
    return found


@lru_cache(maxsize=8)
def _by_name(kind: str) -> dict[str, str]:
    """Map each name of a kind, such as "delegates", to the package that brings it."""
    return {name: package for package, brought in known().items() for name in brought.get(kind, ())}


def known_distribution(op: Op) -> str:
    """Return the pip package that is known to provide `op`; "" if none is.

    Names must match exactly: another `SignalX` is not from this project, and advice must not name packages by a guess, which may belong
    to anybody.
    """
    if isinstance(op, Composite):
        return _by_name("composites").get(op.name, "")
    if isinstance(op, str):
        return _by_name("ops").get(op) or family_distribution(op)
    return BUILTIN_OPS


def family_distribution(op: str) -> str:
    """Return the pip package that is known to provide all custom ops with this one's prefix (such as "Flex"); "" if none is."""
    return next((package for prefix, package in _by_name("families").items() if op.startswith(prefix)), "")


def known_delegate(name: str) -> str:
    """Return the pip package that is known to bring the delegate `name`; "" if none is."""
    return _by_name("delegates").get(name, "")


def known_command(name: str) -> str:
    """Return the pip package that is known to bring the subcommand `name` of `oplet`; "" if none is."""
    return _by_name("commands").get(name, "")


def is_ours(package: str) -> bool:
    """Return whether a package is one of this project."""
    return package in ("oplet", "oplet-core") or known().get(package, {}).get("source", "").startswith(_FOLDERS)


def package_origin(package: str) -> str:
    """Describe where a package of the directory comes from, in words for messages."""
    entry = known()[package]
    if not is_ours(package):
        return f"of {entry['keeper']}, {entry['source']}"
    place = "on PyPI or " if NAMES_ARE_OURS else ""
    return f"of the oplet project, {place}{entry['source']} in its repository"
