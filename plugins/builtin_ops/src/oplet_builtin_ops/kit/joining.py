"""What CONCATENATION prepares where it absorbs slices."""

from __future__ import annotations

from oplet_builtin_ops.shaping.joined_slices import JoinedSlices

__all__ = ["JoinedSlices"]
