"""Composites: ops of a model that have a name, attributes, and a subgraph that says what they compute."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Composite"]


@dataclass(frozen=True, order=True)
class Composite:
    """What resolvers call a composite, as they call a custom op by its name and a built-in operator by its code.

    In a model it is a node of the operator STABLEHLO_COMPOSITE, whose options have the name, a version (converters write 0) and
    attributes, and name a subgraph: its decomposition, which computes the same with other ops.

    Attributes:
        name: "odml.scaled_dot_product_attention".
    """

    name: str

    def __str__(self) -> str:
        return self.name
