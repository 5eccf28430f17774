"""The generated seed models: small valid models of every built-in operator, and small nets."""

from __future__ import annotations

from fuzz import seed_graphs, seed_ops

__all__ = ["make_seeds"]


def make_seeds() -> dict[str, bytes]:
    """The seed models' bytes by name; they are the same on every machine."""
    return {**seed_ops.make(), **seed_graphs.make()}
