"""MIRROR_PAD: a border that mirrors the values inside, including the outermost ones (SYMMETRIC) or not (REFLECT).

Numerics: tflite/kernels/mirror_pad.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk, copies
from oplet.kernels.axes import along, read_ints
from oplet.kernels.operands import PLAIN_TYPES, ensure_operands, ensure_plain, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet.schema.enums import MirrorPadMode
from oplet.schema.options import MirrorPadOptions
from oplet_builtin_ops.arithmetic.quantization import ensure_same_quantization
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero


def _omitted(node: Node) -> int:
    """Return how many edge values the mirrored border leaves out: 1 for REFLECT, 0 for SYMMETRIC."""
    mode = node.options(MirrorPadOptions).mode
    ensure(mode in (MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC), f"mode is {mode!r}; it must be REFLECT or SYMMETRIC.")
    return 1 if mode == MirrorPadMode.REFLECT else 0


def _pairs(node: Node) -> list[tuple[int, int]]:
    source, paddings = node.inputs
    ensure(
        paddings.shape == (source.ndim, 2), lambda: f"{paddings} must have shape [{source.ndim}, 2], a pair per axis of {source}."
    )
    values = read_ints(paddings)
    return list(zip(values[::2], values[1::2]))


def _shapes(node: Node) -> list[Shape]:
    shape, pairs, omitted = node.inputs[0].shape, _pairs(node), _omitted(node)
    for axis, (dim, pair) in enumerate(zip(shape, pairs)):
        ensure(
            min(pair) >= 0 and max(pair) <= dim - omitted,
            f"the paddings {list(pair)} of axis {axis} must be 0 to {dim - omitted}: {node.inputs[0]} has no more to mirror.",
        )
    return [tuple(before + dim + after for dim, (before, after) in zip(shape, pairs))]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, paddings = node.inputs
    output = node.outputs[0]
    ensure_same_type(source, output)
    ensure_plain(source)
    ensure_type(paddings, TensorType.INT32, TensorType.INT64)
    if source.type in (TensorType.UINT8, TensorType.INT8, TensorType.INT16):
        ensure_same_quantization(source, output)
    if source.type == TensorType.INT16:
        ensure_zero_point_is_zero(source, output)
    _omitted(node)
    defer_or_resize(context, node, [paddings], _shapes)


def _bind(node: Node) -> Thunk:
    source, output, pairs, omitted = node.inputs[0].data, node.outputs[0].data, _pairs(node), _omitted(node)
    # First the middle is copied, then axis by axis the borders, each from what is written by then.
    middle = tuple(slice(before, before + dim) for (before, _), dim in zip(pairs, source.shape))
    steps: list[tuple[Array, Array]] = [(output[middle], source)]
    for axis, ((before, after), dim) in enumerate(zip(pairs, source.shape)):
        band = output[along(axis, slice(None), *middle[axis + 1 :])]
        end = before + dim
        front, first = slice(0, before), before + omitted
        back, last = slice(end, end + after), end - omitted
        backwards = along(axis, slice(None, None, -1))
        steps.append((band[along(axis, front)], band[along(axis, slice(first, first + before))][backwards]))
        steps.append((band[along(axis, back)], band[along(axis, slice(last - after, last))][backwards]))
    return copies([step for step in steps if step[0].size])


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=PLAIN_TYPES)
