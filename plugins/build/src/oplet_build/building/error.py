"""The error that selective builds raise."""

from __future__ import annotations

from oplet.errors import OpletError

__all__ = ["BuildError"]


class BuildError(OpletError, ValueError):
    """A selective build cannot be made; the message says why."""
