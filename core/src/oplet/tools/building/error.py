"""What goes wrong while a selective build is made."""

from __future__ import annotations

from oplet.errors import OpletError

__all__ = ["BuildError"]


class BuildError(OpletError, ValueError):
    """A selective build cannot be made; the message says what stands in its way."""
