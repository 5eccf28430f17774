"""A kernel's work as numpy calls whose arguments are looked up."""

from __future__ import annotations

from oplet_builtin_ops.layers.program import Call, run_calls

__all__ = ["Call", "run_calls"]
