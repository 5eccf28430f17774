"""TRANSPOSE: output axis i is input axis perm[i]. Numerics: tflite/kernels/transpose.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_fits, ensure_type
from oplet.kernels.arrays import Shape, Thunk, copier, copies
from oplet.kernels.axes import read_ints, resolve_axis
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run

#: The least values for which a copy in a few calls is faster; the most positions of the last axis, and the least of the axis
#: before, for that.
_LARGE, _SHORT, _LONG = 8192, 4, 16


def _perm(node: Node) -> list[int]:
    source, perm = node.inputs
    values = read_ints(perm)
    ensure(
        perm.ndim == 1 and len(values) == source.ndim,
        lambda: f"{perm} must name each of the {source.ndim} axes of {source} once.",
    )
    axes = [resolve_axis(axis, source.ndim, f"an axis in the permutation {values}") for axis in values]
    ensure_fits(len(set(axes)) == len(axes), lambda: f"the permutation {values} names an axis twice.")
    return axes


def _shapes(node: Node) -> list[Shape]:
    return [tuple(node.inputs[0].shape[axis] for axis in _perm(node))]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, perm = node.inputs
    ensure_same_type(source, node.outputs[0])
    ensure_type(perm, TensorType.INT32)
    defer_or_resize(context, node, [perm], _shapes)


def _bind(node: Node) -> Thunk:
    output, source = node.outputs[0].data, node.inputs[0].data.transpose(_perm(node))
    pays = output.ndim > 1 and output.size >= _LARGE and 1 < output.shape[-1] <= _SHORT and output.shape[-2] >= _LONG
    if not pays or source.strides[-1] == source.itemsize:
        return copier(output, source)
    # Numpy's innermost loop would be too short, so that each position of this axis is copied by a call of its own.
    return copies([(output[..., i], source[..., i]) for i in range(output.shape[-1])])


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
