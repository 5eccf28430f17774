"""Form in which messages show names from a model file."""

from __future__ import annotations

from oplet.texts import shown

__all__ = ["shown"]
