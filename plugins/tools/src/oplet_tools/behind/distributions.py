"""Distributions of LiteRT's packages for programs that look them up (`importlib.metadata.version("ai-edge-litert")`) where they are missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from oplet_tools.behind.doors import VERSIONS

__all__ = ["answered_distributions", "distributions"]


class _AnsweredDistribution(Distribution):
    """A distribution of which there is nothing but its name and version."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: answered by oplet\n"

    def read_text(self, filename: str) -> str | None:
        """Return the metadata; there are no other files."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        """Return a path at which there is nothing."""
        return Path(path)


def distributions(finder: Any, context: Any) -> Iterator[Distribution]:
    """Yield the substitute `importlib.metadata` distribution of a LiteRT package that is looked up by name and that no other finder has.

    Args:
        finder: the meta path finder whose `find_distributions` was called.
        context: the look-up, an `importlib.metadata.DistributionFinder.Context`; without a name (all distributions) nothing is yielded.
    """
    for found in answered_distributions(context):
        for other in sys.meta_path:
            find = getattr(other, "find_distributions", None)
            if other is not finder and find is not None and next(iter(find(context)), None) is not None:
                return
        yield found


def answered_distributions(context: Any) -> Iterator[Distribution]:
    """Yield the substitute distribution of a LiteRT package that is looked up by name, even if another finder has the package."""
    wanted = str(getattr(context, "name", None) or "").lower().replace("-", "_").replace(".", "_")
    if wanted in VERSIONS:
        yield _AnsweredDistribution(wanted.replace("_", "-"), VERSIONS[wanted])
