"""Composites that XNNPACK fuses into one kernel: which ones to claim, how to write them, and whether XNNPACK really took them.

LiteRT's own kernels run a composite's decomposition, which may compute something else (litert-torch 0.10 leaves a transposition out
where one key serves all heads). So a composite is handed over where XNNPACK is known to compute it, or else not at all.
Source of the conditions: tflite/delegates/xnnpack/xnnpack_delegate.cc, VisitScaledDotAttentionCompositeNode, which does not check all of them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oplet import Model, ModelBuilder, Node, TensorType
from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.schema.table import Table

__all__ = ["add_decomposition", "refuses_composite", "untaken"]

_ATTENTION = "odml.scaled_dot_product_attention"
_ATTRIBUTES = frozenset({"scale", "logit_cap"})


def refuses_composite(node: Node) -> str:
    """Return why a composite node is not given to XNNPACK; "" if it may be."""
    if node.composite_name != _ATTENTION:
        return (
            f"XNNPACK does not know the composite '{node.composite_name}', and its decomposition's nodes are claimed one by one"
        )
    if len(node.inputs) != 4 or len(node.outputs) != 1 or not all(node.has_input(i) for i in range(4)):
        return "without a mask XNNPACK does not look for the one that the decomposition may have"
    tensors = *node.inputs, *node.outputs
    if any(tensor.type is not TensorType.FLOAT32 for tensor in tensors):
        return "XNNPACK takes attention of FLOAT32 only"
    query, key, value, mask = (tensor.shape for tensor in node.inputs)
    if not len(query) == len(key) == len(value) == 4 or not 1 <= len(mask) <= 4:
        return "XNNPACK takes attention in four dimensions only"
    batch, _, heads, size = query
    if key != value or key[0] != batch or key[3] != size or not key[2] or heads % key[2] or mask[-1] != key[1]:
        return "XNNPACK takes attention of keys and values of one shape, and of masks as long as they, only"
    if key[2] == 1 and batch > 1:
        return "XNNPACK lets no more than one batch share a key"
    return _refuses_attributes(node)


def _refuses_attributes(node: Node) -> str:
    """Return why attributes are unsafe for XNNPACK, which reads any float as four bytes and ignores integers; "" if they are
    fine.
    """
    written = node.options(StableHLOCompositeOptions).composite_attributes
    raw = b"" if written is None else written.tobytes()
    for name, value in node.composite_map().items():
        if name not in _ATTRIBUTES:
            return f"XNNPACK does not look at the attribute '{name}'"
        if not isinstance(value, float) or not _is_single(value, raw):
            return f"XNNPACK does not read the attribute '{name}', {value!r}, as PyTorch does"
    return ""


def _is_single(value: float, written: bytes) -> bool:
    """Return whether a positive number is stored as a float32."""
    single = np.float32(value)
    return 0 < value < math.inf and single == value and single.tobytes() in written and struct.pack("<d", value) not in written


def add_decomposition(
    builder: ModelBuilder, model: Model, options: StableHLOCompositeOptions, add_buffer: Callable[[tables.Tensor], int | None]
) -> int:
    """Add a composite's decomposition subgraph to a model that is being written; return the subgraph's index there.

    Args:
        builder: the model that is written.
        model: the model that has the composite.
        add_buffer: returns the index of a constant's buffer in the model that is written; None for a tensor that is no constant.

    Raises:
        ModelError: there is no such subgraph, or it calls other subgraphs.
    """
    subgraphs, index = model.root.subgraphs or (), options.decomposition_subgraph_index
    if not 0 <= index < len(subgraphs):
        raise ModelError(f"its decomposition is subgraph {index} of {len(subgraphs)}")
    source = subgraphs[index]
    graph = builder.add_subgraph(source.name or "")
    for table in source.tensors or []:
        graph.add_tensor(
            table.name or "",
            table.type,
            _list(table.shape),
            quantization=table.quantization,
            buffer=add_buffer(table),
            sparsity=table.sparsity,
            is_variable=table.is_variable,
        )
    for operator in source.operators or []:
        op, name, version = model.op_of(operator)
        given = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
        if _calls(given):
            raise ModelError("its decomposition calls other subgraphs")
        custom = bool(model.custom_options(operator)) or name != op.name
        graph.add_operator(
            name if custom else op,
            _list(operator.inputs),
            _list(operator.outputs),
            given,
            version=version,
            custom=custom,
            custom_options=bytes(model.custom_options(operator)),
            intermediates=_list(operator.intermediates),
        )
    graph.set_inputs(*_list(source.inputs))
    graph.set_outputs(*_list(source.outputs))
    return graph.index


def _calls(options: Table | None) -> bool:
    return options is not None and any("subgraph" in field.name or "computation" in field.name for field in options.fields)


def _list(values: Any) -> list[int]:
    return [] if values is None else list(values.tolist())


def untaken(details: Sequence[Mapping[str, Any]], outputs: Sequence[int], composites: Sequence[int]) -> list[int]:
    """Return which composite nodes XNNPACK did not claim, so that LiteRT runs their decompositions.

    Args:
        details: LiteRT's list of all nodes, with the kernels of delegates last.
        outputs: LiteRT's indices of the tensors that are read from the partition.
        composites: LiteRT's indices of the composite nodes.
    """
    nodes = [(_numbers(each["inputs"]), _numbers(each["outputs"])) for each in details if each["op_name"] != "DELEGATE"]
    kernels = [(_numbers(each["inputs"]), _numbers(each["outputs"])) for each in details if each["op_name"] == "DELEGATE"]
    fed = {tensor for reads, _ in kernels for tensor in reads}
    made = {tensor for _, writes in kernels for tensor in writes}
    taken: dict[int, bool] = {}
    for number in reversed(range(len(nodes))):
        writes = nodes[number][1]
        readers = [reader for reader, (reads, _) in enumerate(nodes) if reads & writes]
        inside = not writes & (fed | set(outputs)) and bool(readers) and all(taken.get(reader, False) for reader in readers)
        taken[number] = bool(writes & made) or inside
    return [number for number in composites if not taken[number]]


def _numbers(values: Any) -> set[int]:
    return set(map(int, values))
