"""The recipes of all operators."""

from __future__ import annotations

from . import elementwise, folds, movement, picking  # noqa: F401  # each declares its recipes
from .kit import KINDS, RECIPES, Kind, singles

__all__ = ["KINDS", "RECIPES", "Kind", "singles"]
