"""Gradients of pools. A max pool's goes to the first of the largest values in a window.

Numerics: tensorflow/core/kernels/maxpooling_op.cc and avgpooling_op.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, Registration, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import zeros
from oplet_flex_ops.numerics.operator import Step, operator
from oplet_flex_ops.numerics.planes import Plane, ensure_planes
from oplet_flex_ops.numerics.types import FLOATS, REAL
from oplet_flex_ops.ops.arithmetic.pooling import pool_plane


def _ensure_gradient(node: Node, plane: Plane, source: Shape, position: int) -> None:
    wanted = (source[0], *plane.out, source[3])
    gradient = node.inputs[position]
    ensure(gradient.shape == wanted, f"the gradient {gradient} must have the shape {list(wanted)} of the pool's result.")


def _max_pool(*, second: bool) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        source = node.inputs[0]
        ensure_planes(*node.inputs[:3])
        plane = pool_plane(attributes, source.shape, *map(read_ints, node.inputs[3:]))
        for position in (1, 2):
            _ensure_gradient(node, plane, source.shape, position)
        return [source.shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        (source, _, gradient), [output] = inputs[:3], outputs
        plane = pool_plane(attributes, source.shape, *(each.ravel().tolist() for each in inputs[3:]))
        padded = zeros((*plane.padded, source.shape[3]), source.dtype)

        def run() -> None:
            for picture, given, result in zip(source, gradient, output):
                checkpoint()
                padded[plane.inside] = picture
                best = np.zeros(given.shape, source.dtype)
                chosen = np.full(given.shape, -1)
                for number, (part, within) in enumerate(plane.valid()):
                    value = padded[part]
                    better = within & ((value > best) | (chosen < 0))
                    np.copyto(best, value, where=better)
                    np.copyto(chosen, number, where=better)
                padded.fill(0)
                for number, (_, _, part) in enumerate(plane.taps()):
                    padded[part] += given * (chosen == number)
                result[...] = padded[plane.inside]
                padded.fill(0)

        return run

    return operator(f"T=FLOAT32, T, T{', INT32!, INT32!' * second} -> T", shapes, T=REAL)(formula)


def _max_pool_by_place_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    source, gradient, places = node.inputs
    ensure_planes(*node.inputs)
    plane = pool_plane(attributes, source.shape)
    _ensure_gradient(node, plane, source.shape, 1)
    ensure(places.shape == gradient.shape, f"the places {places} must have the shape of the gradient {gradient}.")
    return [source.shape]


@operator("T, T, Targmax -> T", _max_pool_by_place_shapes, T=REAL, Targmax=(TensorType.INT64,))
def MAXPOOLGRADWITHARGMAX(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Add each window's gradient at the position that the third input names."""
    (_, gradient, places), [output] = inputs, outputs
    batch = output.shape[0]
    picture = output.size // max(batch, 1)
    starts = 0 if attributes.flag("include_batch_in_index", default=False) else np.arange(batch)[:, None] * picture

    def run() -> None:
        output.fill(0)
        if not places.size:
            return
        rows = places.reshape(batch, -1) + starts
        ensure(rows.min() >= 0 and rows.max() < output.size, f"a place is outside of the {output.size} values of the input.")
        np.add.at(output.reshape(-1), rows.ravel(), gradient.ravel())

    return run


def _avg_pool_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    sizes, gradient = node.inputs
    ensure_planes(gradient)
    ensure(sizes.shape == (4,), f"{sizes} is the shape of the pool's input; it must hold four sizes.")
    source = tuple(read_ints(sizes))
    ensure(min(source) > 0, f"{sizes} holds {list(source)}; the sizes must be above zero.")
    _ensure_gradient(node, pool_plane(attributes, source), source, 1)
    return [source]


@operator("INT32!, T -> T", _avg_pool_shapes, T=FLOATS)
def AVGPOOLGRAD(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    gradient, [output] = inputs[1], outputs
    plane = pool_plane(attributes, output.shape)
    padded = zeros((*plane.padded, output.shape[3]), output.dtype)
    counts = sum(within.astype(output.dtype) for _, within in plane.valid())

    def run() -> None:
        for given, result in zip(gradient, output):
            checkpoint()
            shares = given / counts
            padded.fill(0)
            for _, _, part in plane.taps():
                padded[part] += shares
            result[...] = padded[plane.inside]

    return run


MAXPOOLGRAD = _max_pool(second=False)
MAXPOOLGRADV2 = _max_pool(second=True)
