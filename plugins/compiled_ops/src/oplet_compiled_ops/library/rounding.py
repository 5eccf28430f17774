"""Rounding modes of a layer's output stage; `emitting.vectors.Finish` explains each."""

from __future__ import annotations

__all__ = ["AWAY", "CLAMPED", "FLOOR", "NEAREST"]

CLAMPED, NEAREST, FLOOR, AWAY = range(4)
