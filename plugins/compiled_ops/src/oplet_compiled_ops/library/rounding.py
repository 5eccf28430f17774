"""Rounding modes of a layer's output stage; `emitting.vectors.Finish` explains each."""

from __future__ import annotations

__all__ = ["AWAY", "CLAMPED", "FLOOR", "NEAREST", "NEAREST_ABOVE"]

CLAMPED, NEAREST, FLOOR, AWAY, NEAREST_ABOVE = range(5)
