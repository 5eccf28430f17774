"""This room holds what compiled kernels answer."""

from __future__ import annotations

from tests.compiled_first import compiled_first

__all__ = ["compiled_first"]
