"""Answers imports of `tflite_runtime` and `ai_edge_litert` with oplet where these packages are not installed.

Python runs `install` at each start, by the file oplet_litert_shim.pth; so there is nothing here that takes time. The finder that it adds is
the last one: what is installed is found before, and stays what it is. `OPLET_LITERT_SHIM=off` switches it off.
"""

from __future__ import annotations

import sys

__all__ = ["PACKAGES", "LastFinder", "install"]

#: The packages that are answered.
PACKAGES = ("ai_edge_litert", "tflite_runtime")


class LastFinder:
    """A finder at the end of `sys.meta_path`: oplet serves imports of `ai_edge_litert` and `tflite_runtime` that fail otherwise.

    Attributes:
        lists_distributions: False: the finder returns a distribution only if its name is asked for, and lists none.
    """

    lists_distributions = False

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        """Return the spec of a module of the packages that oplet stands in for; None for other modules."""
        if name.partition(".")[0] not in PACKAGES:
            return None
        from oplet_litert_shim.answers import find_spec

        return find_spec(name, path, target)

    @staticmethod
    def find_distributions(context: object = None) -> object:
        """Return an iterator with the distribution of a package that oplet stands in for, if its name is asked for; else empty."""
        if str(getattr(context, "name", None)).lower().replace("-", "_").replace(".", "_") not in PACKAGES:
            return iter(())
        from oplet_litert_shim.answers import find_distributions

        return find_distributions(context)


def install() -> None:
    """Append the finder to `sys.meta_path`, unless it is there."""
    finders: list[object] = sys.meta_path  # type: ignore[assignment]
    if LastFinder not in finders:
        finders.append(LastFinder)
