"""Verification of a whole model before anything runs: the rules of the format beyond the structure of FlatBuffers.

Signatures and calls of other subgraphs are checked here, tensors and graphs in modules of their own. It is one pass over the tables, linear
in the size of the file. Kernels check what they require of their nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from oplet.errors import ModelError
from oplet.model.model import Model
from oplet.model.reachability import named_calls
from oplet.model.verify.graph import verify_graph
from oplet.model.verify.tensor import TensorRules
from oplet.schema import tables
from oplet.schema.columns import as_lazy_tables
from oplet.schema.enums import BuiltinOperator
from oplet.schema.options import CallOnceOptions, IfOptions, WhileOptions
from oplet.texts import shown

if TYPE_CHECKING:
    from oplet.model.model import Model

__all__ = ["named_tensors", "signature_faults", "stale_names", "verify", "verify_calls", "verify_signatures"]


def verify_signatures(root: tables.Model) -> None:
    """Check the rules of signatures that, when broken, make LiteRT refuse the model or crash.

    Raises:
        ModelError: a signature has no key, or belongs to no subgraph.
    """
    count = len(root.subgraphs or [])
    for signature in root.signature_defs or []:
        key = signature.signature_key
        if key is None:
            raise ModelError("Missing exported method name for SignatureDef. A signature of the model has no key.")
        if signature.subgraph_index >= count:
            raise ModelError(f"Signature '{shown(key)}' refers to subgraph {signature.subgraph_index}; the model has {count}.")


def named_tensors(entries: Sequence[tables.TensorMap] | None) -> dict[str, int]:
    """Map the names in a signature to tensor indices, sorted by name. Entries without a name are ignored; of equal names the last
    one counts.
    """
    found = {entry.name: entry.tensor_index for entry in entries or [] if entry.name is not None}
    return dict(sorted(found.items()))


def stale_names(signature: tables.SignatureDef, tensors: int) -> list[str]:
    """Describe the entries of a signature that name tensors which its subgraph does not have.

    Args:
        tensors: the number of tensors of the subgraph.
    """
    return [
        f"its {role} '{shown(name)}' at tensor {index}"
        for role, entries in (("input", signature.inputs), ("output", signature.outputs))
        for name, index in named_tensors(entries).items()
        if index >= tensors
    ]


def signature_faults(model: Model) -> Iterator[str]:
    """Yield a sentence on each signature that cannot be used, with the reason."""
    seen: set[str] = set()
    subgraphs = model.lazy_root.subgraphs or []
    for signature in model.lazy_root.signature_defs or []:
        key = signature.signature_key or ""
        if key in seen:
            yield f"There are two signatures '{shown(key)}', of which the first counts."
        seen.add(key)
        tensors = len(subgraphs[signature.subgraph_index].tensors or [])
        if stale := stale_names(signature, tensors):
            yield (
                f"Signature '{shown(key)}' has {' and '.join(stale)}, and its subgraph has {tensors} tensors: it cannot be run, the "
                "rest of the model can."
            )
        for role, entries in (("inputs", signature.inputs), ("outputs", signature.outputs)):
            names = [entry.name for entry in entries or []]
            if None in names:
                yield f"Signature '{shown(key)}' has {role} without a name, which nobody can ask for."
            for name, count in Counter(name for name in names if name is not None).items():
                if count > 1:
                    yield f"Signature '{shown(key)}' has {count} {role} called '{shown(name)}', of which the last counts."


#: Options whose subgraphs must exist. Those of StableHLO operators may be missing, as a delegate may not need them.
_ALWAYS = (CallOnceOptions, IfOptions, WhileOptions)
#: Fields, of CALL and STABLEHLO_CUSTOM_CALL, that are looked at only where such a node is prepared.
_LATE = ("subgraph", "called_computations")


def verify_calls(root: tables.Model) -> None:
    """Check that subgraphs which nodes call exist, and that no calls are recursive.

    Raises:
        ModelError: a subgraph does not exist, or calls are recursive.
    """
    subgraphs = root.subgraphs or []
    calls: list[list[int]] = []
    for caller, subgraph in enumerate(subgraphs):
        called: dict[int, None] = {}
        operators = as_lazy_tables(subgraph.operators)
        for field in ("builtin_options", "builtin_options_2"):
            for number, table in enumerate(operators.column(field) if operators.has_field(field) else ()):
                for role, index in () if table is None else named_calls(table):
                    if role in _LATE:
                        continue
                    if 0 <= index < len(subgraphs):
                        called[index] = None
                    elif index >= 0 or isinstance(table, _ALWAYS):
                        raise ModelError(
                            f"Node {number} of {_label(root, caller)}: there is no subgraph {index} to call as {role.partition('_subgraph')[0]}; the model has "
                            f"{len(subgraphs)}."
                        )
        calls.append(list(called))
    _refuse_circles(root, calls)


def _refuse_circles(root: tables.Model, calls: list[list[int]]) -> None:
    """Find recursive calls by a search without Python recursion, as chains of calls can have any length.

    Raises:
        ModelError: calls are recursive.
    """
    done = [False] * len(calls)
    for start in range(len(calls)):
        if done[start]:
            continue
        chain, at = [start], {start: 0}
        rest = [iter(calls[start])]
        while chain:
            callee = next(rest[-1], None)
            if callee is None:
                done[chain[-1]] = True
                del at[chain.pop()]
                rest.pop()
            elif callee in at:
                circle = [*chain[at[callee] :], callee]
                names = " -> ".join(_label(root, index) for index in circle[:20]) + (" -> ..." if len(circle) > 20 else "")
                raise ModelError(f"The subgraphs call each other in a circle: {names}; a call must not lead back to its caller.")
            elif not done[callee]:
                at[callee] = len(chain)
                chain.append(callee)
                rest.append(iter(calls[callee]))


def _label(root: tables.Model, index: int) -> str:
    name = (root.subgraphs or [])[index].name
    return f"subgraph {index}" + (f" '{shown(name)}'" if name else "")


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
