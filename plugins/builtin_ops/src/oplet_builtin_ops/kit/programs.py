"""A kernel's work as a list of prebound numpy calls."""

from __future__ import annotations

from oplet_builtin_ops.layers.program import Call, run_calls

__all__ = ["Call", "run_calls"]
