"""FFTs over the last one, two or three axes. Shapes: tensorflow/core/kernels/fft_ops.cc.

The transforms of real signals use the first values of each axis, as many as the input `fft_length` says; shorter signals are
refused, as TensorFlow does not fill them up with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType, charge, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.dense import PORTION, portions
from oplet_flex_ops.numerics.operator import Step, operator
from oplet_flex_ops.numerics.types import COMPLEX, WIDE_FLOATS

_REAL, _COMPLEX = "Treal=FLOAT32", "Tcomplex=COMPLEX64"


def _ensure_axes(node: Node, axes: int) -> None:
    source = node.inputs[0]
    ensure(source.ndim >= axes, f"{source} must have {axes} dimension{'s' * (axes > 1)} or more.")


def _complex(function: Callable[..., Any], axes: int) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        _ensure_axes(node, axes)
        return [node.inputs[0].shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [source], [output] = inputs, outputs
        if not source.size:
            return lambda: None
        return lambda: np.copyto(output, function(source.astype(np.complex128, copy=False), axes=range(-axes, 0)), "unsafe")

    return operator(f"{_COMPLEX} -> Tcomplex", shapes, Tcomplex=COMPLEX)(formula)


def _of_real(axes: int, *, inverse: bool) -> Registration:
    def lengths(values: list[int]) -> list[int]:
        ensure(len(values) == axes, f"the input fft_length holds {len(values)} numbers; it must hold {axes}.")
        ensure(min(values) >= 0, f"the input fft_length holds {values}; a length must not be negative.")
        return values

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        _ensure_axes(node, axes)
        source, length = node.inputs
        ensure(length.ndim == 1, f"{length} is fft_length; it must be a vector.")
        _ensure_same_precision(node)
        sizes = lengths(read_ints(length))
        for size, axis, given in zip(sizes, range(axes), source.shape[-axes:]):
            least = size // 2 + 1 if inverse and axis == axes - 1 else size
            ensure(not given or given >= least, f"dimension {axis - axes} of {source} is {given}; it must be at least {least}.")
        if not inverse:
            sizes = [*sizes[:-1], sizes[-1] // 2 + 1 if sizes[-1] else 0]
        return [(*source.shape[:-axes], *sizes)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        (source, length), [output] = inputs, outputs
        if not output.size:
            return lambda: None
        if not source.size:
            return lambda: output.fill(0)
        sizes = length.ravel().tolist()
        ensure(min(sizes) > 0, f"the input fft_length holds {sizes}; a transform has one value or more.")
        function = np.fft.irfftn if inverse else np.fft.rfftn
        wide = np.complex128 if inverse else np.float64
        one = max(prod(source.shape[-axes:]), prod(output.shape[-axes:]))
        if one > PORTION:
            charge(32 * one)

        def run() -> None:
            for part in portions(source.shape[:-axes], max(1, PORTION // one)):
                found = function(source[part].astype(wide, copy=False), sizes, range(-axes, 0))
                np.copyto(output[part], found, "unsafe")

        return run

    given, made = (_COMPLEX, _REAL) if inverse else (_REAL, _COMPLEX)
    return operator(f"{given}, INT32! -> {made}", shapes, Treal=WIDE_FLOATS, Tcomplex=COMPLEX)(formula)


def _ensure_same_precision(node: Node) -> None:
    single = [tensor.type in (TensorType.FLOAT32, TensorType.COMPLEX64) for tensor in (node.inputs[0], node.outputs[0])]
    ensure(single[0] == single[1], f"{node.inputs[0]} and {node.outputs[0]} must both be of single or of double precision.")


FFT, FFT2D, FFT3D = (_complex(np.fft.fftn, axes) for axes in (1, 2, 3))
IFFT, IFFT2D, IFFT3D = (_complex(np.fft.ifftn, axes) for axes in (1, 2, 3))
IRFFT, IRFFT2D, IRFFT3D = (_of_real(axes, inverse=True) for axes in (1, 2, 3))
RFFT, RFFT2D, RFFT3D = (_of_real(axes, inverse=False) for axes in (1, 2, 3))
