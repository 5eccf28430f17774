"""Variants of a kernel: modules that it imports inside functions, and the conditions on the nodes that need them.

A kernel's module declares them in the constant `VARIANTS`; a build leaves out those that none of its models' nodes needs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from oplet_build.building.error import BuildError
from oplet_build.selection.needs import Use

__all__ = ["VARIANTS", "Variant", "read_variants"]

#: The constant in which a kernel's module declares which nodes need the modules that it imports inside functions.
VARIANTS = "VARIANTS"


@dataclass(frozen=True)
class Variant:
    """A condition on nodes: those that meet it need a certain module."""

    #: For each of the first inputs, the names of the types that it may have; further inputs may have any.
    inputs: tuple[frozenset[str], ...] = ()
    sparse: bool = False  #: Whether the node must have a sparse input.

    def serves(self, use: Use) -> bool:
        """Return whether a node with these input types and sparsity meets the condition."""
        types = [None if type is None else type.name for type in use.inputs]
        typed = len(types) >= len(self.inputs) and all(type in group for type, group in zip(types, self.inputs))
        return typed and (use.sparse or not self.sparse)


def read_variants(module: str, nodes: Iterable[ast.stmt]) -> dict[str, Variant]:
    """Read a module's constant `VARIANTS`: conditions on nodes of a model, by the name of the module that such nodes need.

    Args:
        module: the module's name, for messages.
        nodes: the syntax trees of statements that assign `VARIANTS`.

    Raises:
        BuildError: the value is not written out as a literal.
    """
    found: dict[str, Variant] = {}
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            try:
                found.update((ast.literal_eval(k), _variant(v)) for k, v in _pairs(node.value))
            except (TypeError, ValueError):
                raise BuildError(
                    f"{VARIANTS} of {module} must be written out, as in "
                    f'{VARIANTS} = {{"package.module": {{"inputs": ((TensorType.FLOAT32,), (TensorType.INT8,)), "sparse": True}}}}.'
                ) from None
    return found


def _pairs(node: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(node, ast.Dict):
        raise ValueError
    for key, value in zip(node.keys, node.values):
        if key is None:
            raise ValueError
        yield key, value


def _variant(node: ast.expr) -> Variant:
    parts = {ast.literal_eval(key): value for key, value in _pairs(node)}
    inputs, sparse = parts.pop("inputs", None), parts.pop("sparse", None)
    if parts or (inputs is None and sparse is None):
        raise ValueError
    groups = [] if inputs is None else _members(inputs)
    names = (frozenset(e.attr for e in _members(group) if isinstance(e, ast.Attribute)) for group in groups)
    return Variant(tuple(names), sparse is not None and ast.literal_eval(sparse) is True)


def _members(node: ast.expr) -> list[ast.expr]:
    """Return the elements of a tuple of tuples or of attributes (enum members); raise a ValueError for anything else."""
    if not isinstance(node, ast.Tuple) or not all(isinstance(e, (ast.Tuple, ast.Attribute)) for e in node.elts) or not node.elts:
        raise ValueError
    return node.elts
