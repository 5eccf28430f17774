"""Dilation2D: the maximum of image plus filter over each window (grey-scale morphology).

Numerics: tensorflow/core/kernels/dilation_ops.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Node, Registration, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.kernel import filled
from oplet_flex_ops.ops.volumes.geometry import Geometry, image_geometry
from oplet_flex_ops.signature import REALS, Signature
from oplet_flex_ops.windows import taps


def _shapes(node: Node, given: Geometry) -> list[Shape]:
    source, filters = node.inputs
    given.ensure_rank(source)
    ensure(
        filters.ndim == 3 and 0 not in filters.shape and filters.shape[2] == source.shape[3],
        f"{filters} must be [height, width, {source.shape[3]}], with the channels of {source}.",
    )
    axes = given.axes(source.shape[1:3], filters.shape[:2])
    return [(source.shape[0], *(axis.out for axis in axes), source.shape[3])]


def _dilate(given: Geometry, outputs: list[Array], source: Array, filters: Array) -> None:
    output = outputs[0]
    output[...] = np.iinfo(source.dtype).min if source.dtype.kind in "iu" else -np.inf
    for position, to, of in taps(given.axes(source.shape[1:3], filters.shape[:2])):
        checkpoint()
        np.maximum(output[to], source[of] + filters[position], out=output[to])


DILATION2D: Registration = filled(
    Signature("Dilation2D", "input: T, filter: T -> output: T", T=REALS),
    _shapes,
    _dilate,
    settings=lambda attributes: image_geometry(attributes, dilations="rates"),
)
