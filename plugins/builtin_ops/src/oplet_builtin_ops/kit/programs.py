"""`Call`, one prebound numpy call, and `run_calls`, which makes a function of a list of them."""

from __future__ import annotations

from oplet_builtin_ops.layers.program import Call, run_calls

__all__ = ["Call", "run_calls"]
