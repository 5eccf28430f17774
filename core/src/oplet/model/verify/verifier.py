"""Verification of a whole model before anything runs: the rules of the format beyond the structure of FlatBuffers.

It is one pass over the tables, linear in the size of the file. Kernels check what they require of their nodes.
"""

from __future__ import annotations

from oplet.errors import ModelError
from oplet.model.model import Model
from oplet.model.verify.calls import verify_calls
from oplet.model.verify.graph import verify_graph
from oplet.model.verify.signatures import verify_signatures
from oplet.model.verify.tensor import TensorRules
from oplet.schema import tables
from oplet.schema.columns import as_lazy_tables
from oplet.schema.enums import BuiltinOperator
from oplet.schema.naming import shown

__all__ = ["verify"]

_OPERATORS = frozenset(BuiltinOperator)
#: The most nodes that a message lists.
_LISTED = 8


def verify(model: Model) -> None:
    """Check a model's indices, shapes, buffers, quantization, sparsity, signatures, the order of its graph, and its calls.

    Raises:
        ModelError: a rule is broken; the message names the subgraph, node or tensor and the value.
    """
    root = model.lazy_root
    if not root.subgraphs:
        raise ModelError(f"No subgraph in the model. {model.name} has no 'subgraphs'; convert it again.")
    if root.buffers is None:
        raise ModelError(f"No buffers in the model. {model.name} has no 'buffers'; convert it again.")
    _verify_buffers(model)
    _verify_operator_codes(root)
    rules = TensorRules(model)
    options_left = 2 * len(model.data)
    for index, subgraph in enumerate(root.subgraphs):
        where = f"subgraph {index}" + (f" ('{shown(subgraph.name)}')" if subgraph.name else "")
        constants = _verify_tensors(rules, subgraph, where)
        verify_graph(model, subgraph, constants, where)
        options_left = _verify_large_options(model, subgraph, where, options_left)
    verify_calls(root)
    verify_signatures(root)


def _verify_buffers(model: Model) -> None:
    buffers = model.lazy_root.buffers or []
    for index, buffer in enumerate(buffers):
        if buffer.offset > 1 and buffer.data is None:
            model.buffer(index)


def _verify_operator_codes(root: tables.Model) -> None:
    for index, code in enumerate(root.operator_codes or []):
        number = tables.operator_code(code)
        if number not in _OPERATORS:
            highest = max(BuiltinOperator)
            raise ModelError(
                f"Op builtin_code out of range: {number}. Are you using old TFLite binary with newer model? Operator code {index} is "
                f"not in this schema, whose highest is {int(highest)} ({highest.name}); upgrade oplet. {_users(root, index)}"
            )
        if number == BuiltinOperator.CUSTOM and not code.custom_code:
            raise ModelError(
                f"Operator with CUSTOM builtin_code has no custom_code. It is operator code {index}. {_users(root, index)}"
            )


def _users(root: tables.Model, code: int) -> str:
    """List the nodes that use an operator code, for messages."""
    users = [
        f"node {number} of subgraph {index}"
        for index, subgraph in enumerate(root.subgraphs or [])
        for number, operator in enumerate(subgraph.operators or [])
        if operator.opcode_index == code
    ]
    if not users:
        return "No node uses it."
    more = f" and {len(users) - _LISTED} more" if len(users) > _LISTED else ""
    return f"Used by {', '.join(users[:_LISTED])}{more}."


def _verify_tensors(rules: TensorRules, subgraph: tables.SubGraph, where: str) -> list[int]:
    """Check the tensors of a subgraph; return the indices of those that have a value in the file."""
    if subgraph.tensors is None:
        raise ModelError(f"Did not get tensors in {where}. The subgraph has no 'tensors'.")
    count = len(subgraph.tensors)
    constants = rules.verify(as_lazy_tables(subgraph.tensors), where)
    for role, indices in (("input", subgraph.inputs), ("output", subgraph.outputs)):
        for position, index in enumerate(() if indices is None else indices.tolist()):
            if not 0 <= index < count:
                raise ModelError(
                    f"{where[0].upper()}{where[1:]} has {role} {position} at tensor {index}; it has {count} tensors."
                )
    return constants


def _verify_large_options(model: Model, subgraph: tables.SubGraph, where: str, left: int) -> int:
    """Check custom options after the FlatBuffer: they lie inside the file, and stay within a budget of bytes.

    They are copied for each node, so that many nodes which refer to the same bytes would take unbounded memory.

    Args:
        left: the bytes that are left of the budget.

    Returns:
        The bytes that are left afterwards.
    """
    if not as_lazy_tables(subgraph.operators).has_field("large_custom_options_offset"):
        return left
    for number, operator in enumerate(subgraph.operators or []):
        if operator.large_custom_options_offset > 1 and operator.custom_options is None:
            offset, size = operator.large_custom_options_offset, operator.large_custom_options_size
            if offset + size > len(model.data):
                raise ModelError(
                    f"Custom Option Offset for opcode_index {operator.opcode_index} is out of bound: node {number} of {where} has "
                    f"{size} bytes at {offset}, {model.name} has {len(model.data)}."
                )
            left -= size
            if left < 0:
                raise ModelError(
                    f"Node {number} of {where} has {size} bytes of custom options at {offset}, and those before it took twice the "
                    f"{len(model.data)} bytes of {model.name}; the file is damaged."
                )
    return left
