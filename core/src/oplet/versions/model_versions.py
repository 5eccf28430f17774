"""The operator versions of a whole model: those in the file, those that its nodes need, and the runtime release that has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator
from oplet.schema.naming import shown
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.versions.op_version import explain_version
from oplet.versions.runtime_version import first_runtime, minimum_runtime

__all__ = [
    "MINIMUM_RUNTIME",
    "NodeVersion",
    "make_operator_code",
    "minimum_runtime_of",
    "node_versions",
    "set_minimum_runtime",
    "set_versions",
]

#: Name of the metadata entry with the runtime that a model needs.
MINIMUM_RUNTIME = "min_runtime_version"
#: Size of the entry in bytes, padded with at least one zero as by LiteRT's converter.
_MINIMUM_RUNTIME_SIZE = 16

Releases = Mapping[tuple[str, int], str]


class NodeVersion(NamedTuple):
    """The version of one node.

    Attributes:
        subgraph: index of its subgraph.
        node: its index there.
        op: the operator's name, or the custom op's.
        custom: whether it is a custom op.
        version: the version in the file.
        needed: the lowest version that supports the node; for a custom op the version in the file.
        why: the reason for `needed`, "" for the operator's lowest version.
        first_runtime: the first release that runs `version`; None if it is unknown.
        needed_runtime: the first release that runs `needed`; None if it is unknown.
    """

    subgraph: int
    node: int
    op: str
    custom: bool
    version: int
    needed: int
    why: str
    first_runtime: str | None
    needed_runtime: str | None


def node_versions(root: tables.Model, extra: Releases | None = None) -> list[NodeVersion]:
    """Return the version of every node of every subgraph.

    Args:
        root: the model's tables.
        extra: first releases of operators that LiteRT's table does not have, by name and version.

    Raises:
        ModelError: a node refers to an operator code that does not exist.
    """
    found = []
    for s, n, operator, code, subgraph in _nodes(root):
        op = tables.operator_code(code)
        custom = op == BuiltinOperator.CUSTOM
        name = (code.custom_code or "") if custom else _name(op)
        needed, why = (code.version, "") if custom else _needed(op, operator, subgraph.tensors or ())
        if op == BuiltinOperator.STABLEHLO_COMPOSITE:
            why = _composite(operator) or why
        releases = first_runtime(name, code.version, extra), first_runtime(name, needed, extra)
        found.append(NodeVersion(s, n, name, custom, code.version, needed, why, *releases))
    return found


def set_versions(root: tables.Model) -> None:
    """Give every node of a built-in operator the lowest version that it needs; custom ops keep theirs.

    Operator codes are replaced by those that nodes use, in the order of their first use.

    Raises:
        ModelError: a node refers to an operator code that does not exist.
    """
    codes: dict[tuple[int, str, int], int] = {}
    made: list[tables.OperatorCode] = []
    for _, _, operator, code, subgraph in _nodes(root):
        op = tables.operator_code(code)
        custom = code.custom_code or ""
        version = code.version if op == BuiltinOperator.CUSTOM else _needed(op, operator, subgraph.tensors or ())[0]
        key = op, custom, version
        if key not in codes:
            codes[key] = len(made)
            made.append(make_operator_code(op, custom, version))
        operator.opcode_index = codes[key]
    root.operator_codes = made


def make_operator_code(op: int, custom: str = "", version: int = 1) -> tables.OperatorCode:
    """Make an operator code, with the deprecated one-byte field that readers before schema 3a use."""
    old = min(int(op), int(BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES))
    return tables.OperatorCode(
        builtin_code=op, deprecated_builtin_code=old, version=version, custom_code=custom or None
    )  # fmt: skip


def minimum_runtime_of(root: tables.Model, extra: Releases | None = None) -> str | None:
    """Return the first release that runs every node in the file's version; None if no node's operator is in the table."""
    pairs = {
        (
            (code.custom_code or "")
            if tables.operator_code(code) == BuiltinOperator.CUSTOM
            else _name(tables.operator_code(code)),
            code.version,
        )
        for _, _, _, code, _ in _nodes(root)
    }
    return minimum_runtime(pairs, extra)


def set_minimum_runtime(root: tables.Model, extra: Releases | None = None) -> str | None:
    """Write the metadata entry `min_runtime_version`, replacing an existing one.

    Returns:
        The release. None if no release is known or it does not fit into the entry's 16 bytes; an existing entry is then removed.
    """
    release = minimum_runtime_of(root, extra)
    raw = (release or "").encode()
    if not raw or len(raw) >= _MINIMUM_RUNTIME_SIZE:
        root.metadata = [entry for entry in root.metadata or [] if entry.name != MINIMUM_RUNTIME] or None
        return None
    buffers = root.buffers = [*(root.buffers or [tables.Buffer()])]
    entries = root.metadata = [*(root.metadata or [])]
    data = np.frombuffer(raw.ljust(_MINIMUM_RUNTIME_SIZE, b"\0"), np.uint8)
    entry = next((e for e in entries if e.name == MINIMUM_RUNTIME), None)
    if entry is None:
        entry = tables.Metadata(name=MINIMUM_RUNTIME, buffer=len(buffers))
        entries.append(entry)
        buffers.append(tables.Buffer())
    elif not 0 < entry.buffer < len(buffers) or _is_shared(root, entry):
        entry.buffer = len(buffers)
        buffers.append(tables.Buffer())
    buffers[entry.buffer] = tables.Buffer(data=data)
    return release


def _is_shared(root: tables.Model, entry: tables.Metadata) -> bool:
    others = [e.buffer for e in root.metadata or [] if e is not entry]
    return entry.buffer in others or any(
        t.buffer == entry.buffer for subgraph in root.subgraphs or [] for t in subgraph.tensors or []
    )  # fmt: skip


def _nodes(root: tables.Model) -> Iterator[tuple[int, int, tables.Operator, tables.OperatorCode, tables.SubGraph]]:
    codes = root.operator_codes or []
    for s, subgraph in enumerate(root.subgraphs or []):
        for n, operator in enumerate(subgraph.operators or []):
            if operator.opcode_index >= len(codes):
                raise ModelError(
                    f"Missing registration for opcode_index {operator.opcode_index}. Node {n} of subgraph {s} refers to it; "
                    f"the model has {len(codes)} operator codes."
                )
            yield s, n, operator, codes[operator.opcode_index], subgraph


def _name(op: int) -> str:
    return BuiltinOperator(op).name if op in BuiltinOperator._value2member_map_ else str(op)


def _composite(operator: tables.Operator) -> str:
    options = operator.builtin_options_2
    if not isinstance(options, StableHLOCompositeOptions):
        return ""
    return f"the composite {shown(options.name) or 'without a name'} version {options.version}; any runtime may run its decomposition"


def _needed(op: int, operator: tables.Operator, tensors: Sequence[tables.Tensor]) -> tuple[int, str]:
    if op not in BuiltinOperator._value2member_map_:
        raise ModelError(f"Op builtin_code out of range: {op}. This schema does not have it; upgrade oplet.")
    options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    return explain_version(BuiltinOperator(op), _at(tensors, operator.inputs), _at(tensors, operator.outputs), options)


def _at(tensors: Sequence[tables.Tensor], indices: Sequence[int] | np.ndarray | None) -> list[tables.Tensor | None]:
    given = () if indices is None else np.asarray(indices).tolist()
    return [tensors[i] if 0 <= i < len(tensors) else None for i in given]
