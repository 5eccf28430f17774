"""Composites: ops with a name, attributes, and a subgraph that defines them in terms of other ops."""

from __future__ import annotations

from oplet.records import Record

__all__ = ["Composite"]


class Composite(Record):
    """The key, in resolvers, of a composite op (custom ops have names as keys, built-in operators their codes).

    In a model a composite is a node of the operator STABLEHLO_COMPOSITE. Its options have the name, a version (converters write
    0), attributes, and the index of a subgraph, its decomposition, which computes the same with other ops.

    Attributes:
        name: the composite's name, such as "odml.scaled_dot_product_attention".
    """

    name: str

    def __str__(self) -> str:
        return self.name
