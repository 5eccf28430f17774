"""Companions: packages that are attributes of `oplet`, such as `oplet.ray`, found through entry points of the group `oplet.companions`.

A companion runs models somewhere else (on a cluster, behind a server) and registers nothing with interpreters. The entry point's name is the
attribute, its value the module, which is imported when the attribute is first used.
"""

from __future__ import annotations

from typing import Final

__all__ = ["GROUP", "find_companion"]

#: The group of entry points.
GROUP: Final = "oplet.companions"

#: Companions of this project, for advice where they are not installed.
_KNOWN: Final = {"beam": "oplet-beam", "ray": "oplet-ray"}


def find_companion(name: str) -> object:
    """The module that is `oplet.NAME`.

    Raises:
        AttributeError: no installed package is called so, or several are.
    """
    if not name.startswith("_"):  # tools ask any module for such names
        import importlib_metadata

        found = {entry.value: entry for entry in importlib_metadata.entry_points(group=GROUP, name=name)}
        if len(found) > 1:
            packages = " and ".join(sorted(entry.dist.name for entry in found.values() if entry.dist))
            raise AttributeError(f"oplet.{name} is claimed by {packages}; uninstall all but one.", name=name)
        for entry in found.values():
            return entry.load()
    advice = ""
    if name in _KNOWN:
        from oplet.plugins.install_commands import install_command

        advice = f"; {install_command(_KNOWN[name])} brings it"
    raise AttributeError(f"module 'oplet' has no attribute {name!r}{advice}", name=name)
