"""Third-party delegate libraries, applied by LiteRT."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping

from ai_edge_litert.interpreter import Delegate, load_delegate

__all__ = ["Library"]


class Library:
    """A shared library with a delegate that LiteRT applies to each partition before XNNPACK.

    Args:
        path: a file, or a name that the system's loader finds.
        options: the options of each delegate.

    Raises:
        ValueError: LiteRT cannot load the library, or the library makes no delegate with these options.
    """

    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        self._path = os.path.abspath(path) if os.path.exists(path) else path
        self._options = dict(options)
        self._unused = [self._load()]  # a mistake is known now, and not when a model comes

    def delegate(self) -> Delegate:
        """Return a new delegate, for one LiteRT interpreter: not all delegates can serve two."""
        return self._unused.pop() if self._unused else self._load()

    def _load(self) -> Delegate:
        try:
            ctypes.PyDLL(self._path)  # LiteRT's own object, half made, would complain when Python lets it go
            return load_delegate(self._path, self._options)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split()) or "it does not say why"
            raise ValueError(
                f"LiteRT makes no delegate of the library {self._path} with the options {self._options}: {reason}."
            ) from error
