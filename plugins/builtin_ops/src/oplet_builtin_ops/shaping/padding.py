"""PAD and PADV2: a border of one value around a tensor.

Numerics: tflite/kernels/pad.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk, copies
from oplet.kernels.axes import along
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_builtin_ops.arithmetic.quantization import ensure_same_quantization

_PADDING_TYPES = (TensorType.INT32, TensorType.INT64, TensorType.INT8, TensorType.INT16, TensorType.BOOL)
_QUANTIZED = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)


#: The element types of PAD and PADV2.
PADDED_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16,
    TensorType.INT32, TensorType.INT64, TensorType.BOOL,
)  # fmt: skip


def prepare_pad(context: Context, node: Node) -> None:
    """Check a PAD or PADV2 node (LiteRT has one kernel for both); set its output shape if paddings are constant."""
    ensure_operands(node, 2, optional=1)
    source, paddings = node.inputs[:2]
    output, value = node.outputs[0], node.optional_input(2)
    ensure_type(source, *PADDED_TYPES)
    ensure_same_type(source, output)
    ensure_type(paddings, *_PADDING_TYPES)
    if value is not None:
        ensure_same_type(value, source)
        ensure(value.size == 1, f"the padding value {value} must be one value, not {value.size}.")
        if _is_quantized(source):
            ensure_same_quantization(value, output)
    elif _is_quantized(source):
        limits = np.iinfo(output.dtype)
        ensure(
            limits.min <= output.zero_point <= limits.max,
            lambda: f"{output} has zero point {output.zero_point}, which its type cannot hold; padding is made of it.",
        )
    defer_or_resize(context, node, [paddings], _shapes)


def bind_pad(context: Context, node: Node) -> Thunk:
    """Return the function that runs PAD or PADV2."""
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:2])


def _is_quantized(tensor: Tensor) -> bool:
    # LiteRT always pads uint8 as quantized, other integers only if they have quantization parameters.
    return tensor.type == TensorType.UINT8 or (tensor.type in _QUANTIZED and tensor.quantization is not None)


def _pairs(node: Node) -> list[list[int]]:
    source, paddings = node.inputs[:2]
    ensure(
        paddings.shape == (source.ndim, 2), lambda: f"{paddings} must have shape [{source.ndim}, 2], a pair per axis of {source}."
    )
    pairs: list[list[int]] = np.asarray(node.inputs[1].data, np.int64).tolist()
    ensure(min(map(min, pairs), default=0) >= 0, lambda: f"the paddings {pairs} must not be negative.")
    return pairs


def _shapes(node: Node) -> list[Shape]:
    return [tuple(before + dim + after for dim, (before, after) in zip(node.inputs[0].shape, _pairs(node)))]


def _bind(node: Node) -> Thunk:
    output, source, value = node.outputs[0], node.inputs[0].data, node.optional_input(2)
    if value is not None:
        filling = value.data.reshape(())
    else:
        filling = np.zeros((), output.dtype)
        filling[...] = output.zero_point if _is_quantized(node.inputs[0]) else 0
    inside = output.data
    # Another tensor may have used the output's memory since the last run, so that the border is written each time.
    border: list[Array] = []
    for axis, (before, after) in enumerate(_pairs(node)):
        if not before and not after:
            continue
        end = inside.shape[axis] - after
        for part in (slice(0, before), slice(end, None)):
            slab = inside[along(axis, part)]
            if slab.size:
                border.append(slab)
        inside = inside[along(axis, slice(before, end))]

    # As `np.broadcast_to` has it, which takes longer than the rest of opening a small node.
    content = filling.reshape(1).view(np.uint8)
    spread = [np.ndarray(slab.shape, filling.dtype, content, 0, (0,) * slab.ndim) for slab in border]
    return copies([*zip(border, spread), (inside, source)])


PAD = Registration(prepare=prepare_pad, bind=bind_pad, pure=True, types=PADDED_TYPES)
PADV2 = PAD
