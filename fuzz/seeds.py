"""The seed models: small valid ones, of every built-in operator and of nets of a few nodes, made when they are needed."""

from __future__ import annotations

from fuzz import seed_graphs, seed_ops

__all__ = ["make_seeds"]


def make_seeds() -> dict[str, bytes]:
    """The bytes of the seed models by name; the same on every machine."""
    return {**seed_ops.make(), **seed_graphs.make()}
