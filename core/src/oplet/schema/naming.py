"""Names from a model file, as messages show them."""

from __future__ import annotations

from oplet.texts import shown

__all__ = ["shown"]
