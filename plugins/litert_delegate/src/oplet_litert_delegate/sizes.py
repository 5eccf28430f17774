"""Estimates memory and work of nodes in LiteRT beforehand, since LiteRT allocates without limits and cannot be interrupted.

Source of what its kernels keep beside tensors: tflite/kernels/conv.cc, conv3d.cc, conv3d_transpose.cc, transpose_conv.cc and batch_matmul.cc
(patches, transposed operands), and XNNPACK's indirection buffers (src/indirection.c): a pointer for each tap of each place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from oplet import Allocation, BuiltinOperator, Node, Tensor
from oplet.schema.options import BatchMatMulOptions, LocalResponseNormalizationOptions, Pool2DOptions

__all__ = ["WORK_PER_SECOND", "Size", "size_of", "size_of_all"]

#: Multiplications and moves that any of LiteRT's kernels makes in a second on one thread, at least about.
WORK_PER_SECOND = 1_000_000_000

_Op = BuiltinOperator
_POINTER = 8
_POOLS = frozenset({_Op.AVERAGE_POOL_2D, _Op.L2_POOL_2D, _Op.MAX_POOL_2D})
_RECURRENT = frozenset(
    {
        _Op.BIDIRECTIONAL_SEQUENCE_LSTM, _Op.BIDIRECTIONAL_SEQUENCE_RNN, _Op.LSTM, _Op.RNN, _Op.SVDF, _Op.UNIDIRECTIONAL_SEQUENCE_LSTM,
        _Op.UNIDIRECTIONAL_SEQUENCE_RNN,
    }
)  # fmt: skip
#: A constant that is no part of the file is written into the part's model, and once more where XNNPACK packs it.
_COPIES = 3


class Size(NamedTuple):
    """Memory and work of one node or several.

    Attributes:
        tensors: bytes of the tensors.
        scratch: further bytes during a run.
        tables: further bytes as long as the LiteRT interpreter lives, such as XNNPACK's indirection buffers.
        work: the number of multiplications, or of values that are moved.
    """

    tensors: int
    scratch: int
    tables: int
    work: int

    @property
    def nbytes(self) -> int:
        """An upper bound of the bytes in total."""
        return self.tensors + max(self.scratch, self.tables)


def size_of(node: Node) -> Size:
    """Return the memory and work of one node, which its own kernel has prepared."""
    tensors = list(dict.fromkeys(tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None))
    together = sum(map(_nbytes, tensors))
    scratch, tables, work = _besides(node)
    return Size(together, scratch, tables, max(work, sum(tensor.size for tensor in tensors if not tensor.is_constant)))


def size_of_all(nodes: Sequence[Node], outputs: Sequence[Tensor]) -> Size:
    """Return the memory and work of a partition; `tensors` is the most bytes of tensors that are live at one node.

    Args:
        nodes: the nodes, in execution order.
        outputs: the tensors that are read outside of these nodes.
    """
    made = {tensor for node in nodes for tensor in node.outputs}
    read = {tensor for node in nodes for tensor in node.inputs if tensor is not None}
    last = {tensor: place for place, node in enumerate(nodes) for tensor in (*node.inputs, *node.outputs) if tensor is not None}
    kept = [tensor for tensor in read | made if tensor not in made or tensor in outputs]
    now = always = sum(map(_nbytes, kept))
    most, scratch, tables, work, staying = always, 0, 0, 0, set(kept)
    for place, node in enumerate(nodes):
        size = size_of(node)
        now += sum(_nbytes(tensor) for tensor in node.outputs if tensor not in staying)
        most, scratch = max(most, now), max(scratch, now + size.scratch)
        tables, work = tables + size.tables, work + size.work
        gone = {tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None and last[tensor] == place}
        now -= sum(map(_nbytes, gone - staying))
    return Size(most, max(scratch - most, 0), tables, work)


def _nbytes(tensor: Tensor) -> int:
    """Return the bytes that LiteRT keeps for a tensor: none for a constant that it can read from the file as it is."""
    if tensor.dtype.hasobject:
        return 0
    nbytes = tensor.size * tensor.dtype.itemsize
    if not tensor.is_constant:
        return nbytes
    return nbytes * _COPIES if tensor.allocation is Allocation.COMPUTED or tensor.sparsity is not None else 0


def _besides(node: Node) -> tuple[int, int, int]:
    """Return (scratch bytes, table bytes, work) of operators that need more than their tensors."""
    op, shapes = node.op, [() if tensor is None else tensor.shape for tensor in node.inputs]
    if not node.outputs:
        return 0, 0, 0
    out = node.outputs[0]
    if op in (_Op.CONV_2D, _Op.CONV_3D):
        weights = node.inputs[1]
        channels = weights.shape[0] if op is _Op.CONV_2D else weights.shape[-1]
        patch = weights.size // max(channels, 1)
        places = out.size // max(out.shape[-1], 1)
        return (
            places * patch * node.inputs[0].dtype.itemsize,
            places // out.shape[0] * patch // shapes[0][-1] * _POINTER,
            out.size * patch,
        )
    if op is _Op.DEPTHWISE_CONV_2D:
        taps = math.prod(shapes[1][1:3])
        return 0, math.prod(out.shape[1:3]) * taps * _POINTER, out.size * taps
    if op in (_Op.TRANSPOSE_CONV, _Op.CONV_3D_TRANSPOSE):
        weights, data = node.inputs[1], node.inputs[2]
        columns = data.size // max(data.shape[-1], 1) * (weights.size // max(data.shape[-1], 1))
        taps = math.prod(shapes[1][1:3])
        return columns * 4 + weights.size * 4, math.prod(out.shape[1:3]) * taps * _POINTER, columns * data.shape[-1]
    if op in _POOLS:
        options = node.options(Pool2DOptions)
        taps = options.filter_height * options.filter_width
        return 0, math.prod(out.shape[1:3]) * taps * _POINTER, out.size * taps
    if op is _Op.RESIZE_BILINEAR:
        return 0, math.prod(out.shape[1:3]) * 4 * _POINTER, out.size * 4
    if op is _Op.FULLY_CONNECTED:
        return 0, 0, out.size * shapes[1][-1]
    if op is _Op.BATCH_MATMUL:
        factors = shapes[0][-2 if node.options(BatchMatMulOptions).adj_x else -1]
        return sum(node.inputs[i].size * 4 for i in (0, 1)), 0, out.size * factors
    if op is _Op.LOCAL_RESPONSE_NORMALIZATION:
        return 0, 0, out.size * (2 * node.options(LocalResponseNormalizationOptions).radius + 1)
    if op in (_Op.NON_MAX_SUPPRESSION_V4, _Op.NON_MAX_SUPPRESSION_V5):
        return 0, 0, shapes[0][0] * min(max(out.size, 1), shapes[0][0])
    if op in _RECURRENT:
        steps = node.inputs[0].size // max(shapes[0][-1], 1)
        factors = sum(tensor.size for tensor in node.inputs[1:] if tensor is not None and not tensor.is_variable)
        return 0, 0, steps * factors
    return 0, 0, 0
