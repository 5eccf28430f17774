"""Removal of everything from a model that running it does not need.

What remains is renumbered wherever it is referred to by index: subgraphs (in options, signatures and control dependencies), tensors (in
nodes, signatures and quantization), buffers and operator codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oplet import Model
from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.decode import extent
from oplet.schema.enums import BuiltinOperator
from oplet.schema.table import Table
from oplet.toolkit import (
    CONTROL_DEPENDENCIES,
    decode_control_dependencies,
    entry_subgraphs,
    reachable_subgraphs,
    subgraph_fields,
)
from oplet_tools.describing.versions import KNOWN_CUSTOM_OPS, flex

__all__ = ["copied", "drop_buffers", "indices", "strip"]

_VERSION = 1


def encode_control_dependencies(edges: Sequence[Sequence[tuple[int, int]]]) -> bytes:
    """Encode control edges between nodes as the metadata entry `model_control_dependencies`.

    Args:
        edges: for each subgraph its edges, as pairs (before, after) of node indices.
    """
    out = bytearray()
    _put(out, _VERSION)
    _put(out, len(edges))
    for of_subgraph in edges:
        _put(out, len(of_subgraph))
        for before, after in of_subgraph:
            _put(out, _zigzag(before))
            _put(out, _zigzag(after))
    return bytes(out)


def _put(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _zigzag(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1


#: Metadata entries that runtimes and delegates read.
_READ_WHEN_RUN = frozenset({"min_runtime_version", CONTROL_DEPENDENCIES, "reduced_precision_support"})


def copied(value: Any) -> Any:
    """Copy a table and the tables in it; arrays, which are never changed in place, are shared with the copy."""
    if isinstance(value, Table):
        twin = type(value).__new__(type(value))
        twin.__dict__.update((name, copied(item)) for name, item in value.__dict__.items())
        return twin
    return [copied(item) for item in value] if isinstance(value, list) else value


def indices(values: Any) -> list[int]:
    """Return a table's vector of numbers as a list, empty if the table has none."""
    return [] if values is None else np.asarray(values).tolist()


def strip(model: Model) -> dict[str, int]:
    """Remove, in place, what running the model does not need; its outputs stay the same.

    Returns:
        The number of removed items, by kind ("tensors", "buffers" and so on).

    Raises:
        ModelError: the model's control dependencies are of an unknown form.
    """
    root = model.root
    taken = {
        "description": int(bool(root.description)),
        "metadata": _drop_metadata(root),
        "debug references": _drop_debug_references(root),
    }
    root.__dict__.pop("description", None)
    taken["subgraphs"] = _drop_subgraphs(model)
    taken["tensors"] = sum(_drop_tensors(model, index) for index in range(len(root.subgraphs or [])))
    taken["tensor names"] = _drop_names(root)
    taken["quantization ranges"] = _drop_ranges(root)
    taken["operator codes"] = _drop_operator_codes(root)
    taken["buffers"] = drop_buffers(root)
    taken["attached archives"] = _drop_archive(model)
    return taken


def drop_buffers(root: tables.Model) -> int:
    """Remove unreferenced buffers and external buffers from a model's tables, in place; return their number."""
    buffers = root.buffers or []
    tensors = [tensor for subgraph in root.subgraphs or [] for tensor in subgraph.tensors or []]
    entries = root.metadata or []
    used = {0, *(tensor.buffer for tensor in tensors), *(entry.buffer for entry in entries), *indices(root.metadata_buffer)}
    places = _places(len(buffers), used)
    root.buffers = [buffers[index] for index in places]
    owners: list[tables.Tensor | tables.Metadata] = [*tensors, *entries]
    for owner in owners:
        if owner.buffer in places:
            owner.buffer = places[owner.buffer]
    if root.metadata_buffer is not None:
        root.metadata_buffer = _renumbered(root.metadata_buffer, places)
    external = root.external_buffers or []
    wanted = {tensor.external_buffer for tensor in tensors}
    if external:
        root.external_buffers = [buffer for buffer in external if buffer.id in wanted]
    return len(buffers) - len(places) + len(external) - len(root.external_buffers or [])


def _drop_metadata(root: tables.Model) -> int:
    before = root.metadata or []
    kept = [entry for entry in before if entry.name in _READ_WHEN_RUN]
    root.metadata = kept or None
    root.metadata_buffer = None
    return len(before) - len(kept)


def _drop_archive(model: Model) -> int:
    """Drop the zip archive of label files that metadata tools append to a model, if nothing else follows the FlatBuffer; return
    the number of archives dropped, 0 or 1.
    """
    root = model.root
    nodes = [node for subgraph in root.subgraphs or [] for node in subgraph.operators or []]
    outside = any(buffer.data is None and buffer.offset > 1 for buffer in root.buffers or [])
    if not len(model.data) or outside or any(n.large_custom_options_offset > 1 or _is_opaque(model, n) for n in nodes):
        return 0
    archive = bytes(model.data[extent(tables.Model, model.data)[1] :]).lstrip(b"\0")
    if not archive.startswith(b"PK"):
        return 0
    model.data = memoryview(b"")
    return 1


def _drop_debug_references(root: tables.Model) -> int:
    subgraphs = root.subgraphs or []
    owners: list[Table] = [*subgraphs, *(node for subgraph in subgraphs for node in subgraph.operators or [])]
    return sum(owner.__dict__.pop("debug_metadata_index", -1) >= 0 for owner in owners)


def _drop_subgraphs(model: Model) -> int:
    root = model.root
    subgraphs = root.subgraphs or ()
    if any(_is_opaque(model, node) for subgraph in subgraphs for node in subgraph.operators or []):
        return 0  # a custom op's options may refer to any subgraph
    places = _places(len(subgraphs), reachable_subgraphs(subgraphs, entry_subgraphs(root)))
    if len(places) == len(subgraphs):
        return 0
    _renumber_control_dependencies(model, list(places))
    root.subgraphs = [subgraphs[index] for index in places]
    for signature in root.signature_defs or []:
        signature.subgraph_index = places[signature.subgraph_index]
    for subgraph in root.subgraphs:
        for node in subgraph.operators or []:
            for options, field in subgraph_fields(node):
                value = getattr(options, field)
                new = _renumbered(value, places) if isinstance(value, np.ndarray) else places.get(value, value)
                setattr(options, field, new)
    return len(subgraphs) - len(places)


def _is_opaque(model: Model, node: tables.Operator) -> bool:
    """Return whether a node is a custom op that may refer to tensors and subgraphs in an unknown way."""
    op, name, _ = model.op_of(node)
    return op is BuiltinOperator.CUSTOM and name not in KNOWN_CUSTOM_OPS and not flex(name)


def _drop_tensors(model: Model, index: int) -> int:
    root = model.root
    subgraph = (root.subgraphs or [])[index]
    tensors = subgraph.tensors or []
    nodes = subgraph.operators or []
    if any(_is_opaque(model, node) for node in nodes):
        return 0
    signatures = [signature for signature in root.signature_defs or [] if signature.subgraph_index == index]
    entries = [entry for signature in signatures for entry in (*(signature.inputs or []), *(signature.outputs or []))]
    used = {*indices(subgraph.inputs), *indices(subgraph.outputs), *(entry.tensor_index for entry in entries)}
    for node in nodes:
        used.update(indices(node.inputs), indices(node.outputs), indices(node.intermediates))
    waiting = list(used)
    while waiting:  # scales may be tensors, which may be quantized themselves
        place = waiting.pop()
        if 0 <= place < len(tensors) and (more := set(_scale_tensors(tensors[place])) - used):
            used |= more
            waiting.extend(more)
    places = _places(len(tensors), used)
    if len(places) == len(tensors):
        return 0
    subgraph.tensors = [tensors[place] for place in places]
    for owner, field in ((subgraph, "inputs"), (subgraph, "outputs")):
        _renumber_field(owner, field, places)
    for node in nodes:
        for field in ("inputs", "outputs", "intermediates"):
            _renumber_field(node, field, places)
    for entry in entries:
        entry.tensor_index = places.get(entry.tensor_index, entry.tensor_index)  # dangling references stay
    for tensor in subgraph.tensors:
        details = tensor.quantization.details if tensor.quantization is not None else None
        if isinstance(details, tables.BlockwiseQuantization | tables.MultiAxisQuantization):
            details.scales = places.get(details.scales, details.scales)
            details.zero_points = places.get(details.zero_points, details.zero_points)
    return len(tensors) - len(places)


def _scale_tensors(tensor: tables.Tensor) -> tuple[int, ...]:
    details = tensor.quantization.details if tensor.quantization is not None else None
    if isinstance(details, tables.BlockwiseQuantization | tables.MultiAxisQuantization):
        return details.scales, details.zero_points
    return ()


def _drop_names(root: tables.Model) -> int:
    """Remove the names of all tensors except the model's inputs and outputs; return their number."""
    entries = entry_subgraphs(root)
    dropped = 0
    for index, subgraph in enumerate(root.subgraphs or []):
        kept = {*indices(subgraph.inputs), *indices(subgraph.outputs)} if index in entries else set()
        for signature in root.signature_defs or []:
            if signature.subgraph_index == index:
                kept.update(entry.tensor_index for entry in (*(signature.inputs or []), *(signature.outputs or [])))
        for place, tensor in enumerate(subgraph.tensors or []):
            if place not in kept and tensor.__dict__.pop("name", None):
                dropped += 1
    return dropped


def _drop_ranges(root: tables.Model) -> int:
    """Remove the minimum and maximum values seen in training, which kernels do not read; return their number."""
    dropped = 0
    for subgraph in root.subgraphs or []:
        for tensor in subgraph.tensors or []:
            if tensor.quantization is not None:
                found = [tensor.quantization.__dict__.pop(name, None) for name in ("min", "max")]
                dropped += any(range is not None for range in found)
    return dropped


def _drop_operator_codes(root: tables.Model) -> int:
    codes = root.operator_codes or []
    nodes = [node for subgraph in root.subgraphs or [] for node in subgraph.operators or []]
    places = _places(len(codes), {node.opcode_index for node in nodes})
    root.operator_codes = [codes[index] for index in places]
    for node in nodes:
        node.opcode_index = places[node.opcode_index]
    return len(codes) - len(places)


def _places(count: int, used: set[int]) -> dict[int, int]:
    """Map each used index below `count` to the one that it gets when the unused ones are removed."""
    return {old: new for new, old in enumerate(index for index in range(count) if index in used)}


def _renumber_field(owner: Table, field: str, places: dict[int, int]) -> None:
    if getattr(owner, field) is not None:
        setattr(owner, field, _renumbered(getattr(owner, field), places))


def _renumbered(values: Any, places: dict[int, int]) -> np.ndarray[Any, Any]:
    return np.array([places.get(value, value) for value in indices(values)], np.int32)


def _renumber_control_dependencies(model: Model, kept: list[int]) -> None:
    entry = next((entry for entry in model.root.metadata or [] if entry.name == CONTROL_DEPENDENCIES), None)
    data = None if entry is None else model.buffer(entry.buffer)
    if entry is None or data is None:
        return
    buffers, subgraphs = model.root.buffers or (), model.root.subgraphs or ()
    lists = decode_control_dependencies(data.tobytes())
    if lists is None or len(lists) != len(subgraphs):
        raise ModelError(
            f"The metadata '{CONTROL_DEPENDENCIES}' of {model.name} does not have one list for each of its {len(subgraphs)} subgraphs, "
            "so that it cannot be kept when subgraphs go; rewrite the model without stripping it."
        )
    changed = encode_control_dependencies([lists[index] for index in kept])
    entry.buffer = len(buffers)
    model.root.buffers = [*buffers, tables.Buffer(data=np.frombuffer(changed, np.uint8))]
