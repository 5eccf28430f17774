"""The model's tables with those of inlined nodes and tensors, for delegates that read a node's or tensor's table by its index."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.model.model import Model
from oplet.schema import tables

if TYPE_CHECKING:
    from oplet.runtime.subgraph import InlinedPiece, Subgraph

__all__ = ["inlined_model"]


def inlined_model(model: Model, subgraphs: Sequence[Subgraph]) -> Model:
    """Return the model with tables of inlined nodes and tensors after those of the file; the same model if there are none.

    Args:
        model: the model as in the file.
        subgraphs: its subgraphs.
    """
    if not any(subgraph.delegated.pieces for subgraph in subgraphs):
        return model
    root = copy.copy(model.root)
    of_file = root.subgraphs or ()
    root.subgraphs = [_extended(table, subgraph, of_file) for table, subgraph in zip(of_file, subgraphs)]
    made = copy.copy(model)
    made.lazy_root = root
    return made


def _extended(table: tables.SubGraph, subgraph: Subgraph, of_file: Sequence[tables.SubGraph]) -> tables.SubGraph:
    if not subgraph.delegated.pieces:
        return table
    extended = copy.copy(table)
    # Kernels may have added tensors in between, which have no tables.
    added = subgraph.tensors[subgraph.file_tensors :]
    shapes = [np.array(tensor.shape, np.int32) for tensor in added]
    bare = [tables.Tensor(name=tensor.name, type=tensor.type, shape=shape) for tensor, shape in zip(added, shapes)]
    tensors, operators = [*(table.tensors or []), *bare], [*(table.operators or [])]
    known = set(range(subgraph.file_tensors))
    for piece in subgraph.delegated.pieces:
        source = of_file[piece.decomposition]
        for index, inner in zip(piece.tensors, source.tensors or []):
            if index not in known:  # else it is an input or output, with a table of its own
                known.add(index)
                tensors[index] = _moved_tensor(inner, piece)
        operators += [_moved_operator(operator, piece) for operator in source.operators or []]
    extended.tensors, extended.operators = tensors, operators
    return extended


def _moved_tensor(table: tables.Tensor, piece: InlinedPiece) -> tables.Tensor:
    quantization = table.quantization
    if quantization is None or not isinstance(quantization.details, tables.BlockwiseQuantization):
        return table
    moved, quantization, details = copy.copy(table), copy.copy(quantization), copy.copy(quantization.details)
    for role in ("scales", "zero_points"):
        if 0 <= (index := getattr(details, role)) < len(piece.tensors):
            setattr(details, role, piece.tensors[index])
    quantization.details, moved.quantization = details, quantization
    return moved


def _moved_operator(table: tables.Operator, piece: InlinedPiece) -> tables.Operator:
    moved = copy.copy(table)
    for role in ("inputs", "outputs", "intermediates"):
        given: Any = getattr(table, role)
        if given is not None:
            indices = [piece.tensors[index] if index >= 0 else index for index in given.tolist()]
            setattr(moved, role, np.array(indices, np.int32))
    return moved
