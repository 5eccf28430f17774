"""Max and average pools of images. Numerics: tensorflow/core/kernels/maxpooling_op.cc and avgpooling_op.cc."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, Registration, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Step, operator
from oplet_flex_ops.numerics.planes import Plane, ensure_planes, plane_of
from oplet_flex_ops.numerics.types import FLOATS, SIGNED

__all__ = ["pool_plane"]

_TYPES = (*FLOATS, *SIGNED, TensorType.UINT8, TensorType.UINT16)


def pool_plane(attributes: Attributes, source: Shape, *sizes: Sequence[int]) -> Plane:
    """Return a pool's windows, after checking that it pools along height and width only.

    Args:
        sizes: the sizes of windows and strides of an op that has them as inputs; none where they are attributes.
    """
    ksize, strides = sizes or (attributes.integers("ksize"), attributes.integers("strides"))
    fits = len(ksize) == 4 and ksize[0] == ksize[3] == 1 and min(ksize) > 0
    ensure(fits, f"ksize of {attributes.op} is {list(ksize)}; it must be [1, height, width, 1] and above zero.")
    plane = plane_of(attributes, source, ksize[1:3], strides, [1, 1, 1, 1])
    for axis in plane:
        ensure(axis.before < axis.filter, f"windows of {list(ksize[1:3])} fit into the padding of {attributes.op}.")
    return plane


def _max_pool(*, second: bool) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        source = node.inputs[0]
        ensure_planes(source)
        plane = pool_plane(attributes, source.shape, *map(read_ints, node.inputs[1:]))
        return [(source.shape[0], *plane.out, source.shape[3])]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        source, [output] = inputs[0], outputs
        plane = pool_plane(attributes, source.shape, *(each.ravel().tolist() for each in inputs[1:]))
        lowest = -np.inf if source.dtype.kind == "f" else np.iinfo(source.dtype).min
        padded = np.full((*plane.padded, source.shape[3]), lowest, source.dtype)

        def run() -> None:
            for picture, result in zip(source, output):
                checkpoint()
                padded[plane.inside] = picture
                result.fill(lowest)
                for _, _, part in plane.taps():
                    np.maximum(result, padded[part], out=result)

        return run

    return operator(f"T=FLOAT32{', INT32!, INT32!' * second} -> T", shapes, T=_TYPES)(formula)


def _avg_pool_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    source = node.inputs[0]
    ensure_planes(source)
    return [(source.shape[0], *pool_plane(attributes, source.shape).out, source.shape[3])]


@operator("T -> T", _avg_pool_shapes, T=FLOATS)
def AVGPOOL(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    [source], [output] = inputs, outputs
    plane = pool_plane(attributes, source.shape)
    padded = np.zeros((*plane.padded, source.shape[3]), source.dtype)
    counts = sum(within.astype(source.dtype) for _, within in plane.valid())

    def run() -> None:
        for picture, result in zip(source, output):
            checkpoint()
            padded[plane.inside] = picture
            result.fill(0)
            for _, _, part in plane.taps():
                result += padded[part]
            result /= counts

    return run


MAXPOOL = _max_pool(second=False)
MAXPOOLV2 = _max_pool(second=True)
