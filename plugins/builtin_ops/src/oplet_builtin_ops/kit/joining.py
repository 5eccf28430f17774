"""`JoinedSlices`, the plan that CONCATENATION prepares when slices are fused into it."""

from __future__ import annotations

from oplet_builtin_ops.shaping.joined_slices import JoinedSlices

__all__ = ["JoinedSlices"]
