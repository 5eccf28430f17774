"""The operator versions in a model's file, and the runtime release that has them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator
from oplet.versions.runtime_version import minimum_runtime

__all__ = [
    "MINIMUM_RUNTIME",
    "make_operator_code",
    "minimum_runtime_of",
    "nodes_of",
    "operator_name",
    "set_minimum_runtime",
]

#: Name of the metadata entry with the runtime that a model needs.
MINIMUM_RUNTIME = "min_runtime_version"
#: Size of the entry in bytes, padded with at least one zero as by LiteRT's converter.
_MINIMUM_RUNTIME_SIZE = 16

Releases = Mapping[tuple[str, int], str]


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
            else operator_name(tables.operator_code(code)),
            code.version,
        )
        for _, _, _, code, _ in nodes_of(root)
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


def nodes_of(root: tables.Model) -> Iterator[tuple[int, int, tables.Operator, tables.OperatorCode, tables.SubGraph]]:
    """Yield each node of a model: its subgraph's index, its own, the node, its operator code and its subgraph.

    Raises:
        ModelError: a node refers to an operator code that does not exist.
    """
    codes = root.operator_codes or []
    for s, subgraph in enumerate(root.subgraphs or []):
        for n, operator in enumerate(subgraph.operators or []):
            if operator.opcode_index >= len(codes):
                raise ModelError(
                    f"Missing registration for opcode_index {operator.opcode_index}. Node {n} of subgraph {s} refers to it; "
                    f"the model has {len(codes)} operator codes."
                )
            yield s, n, operator, codes[operator.opcode_index], subgraph


def operator_name(op: int) -> str:
    """Return the name of a built-in operator; its number if this schema does not have it."""
    return BuiltinOperator(op).name if op in BuiltinOperator._value2member_map_ else str(op)
