"""LOGISTIC, 1 / (1 + exp(-x)), and TANH: plain numbers, and quantized ones by look-up table.

Numerics: tflite/kernels/activations.cc (TanhPrepare), internal/reference/logistic.h, integer_ops/logistic.h, integer_ops/tanh.h
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.arithmetic.lookup import sampled_table
from oplet_builtin_ops.elementwise.activations import bind_lookup, prepare_lookup, prepare_unary

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16)
_TYPES = (*_FLOATS, TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def _prepare_logistic(context: Context, node: Node) -> None:
    source, output = prepare_unary(context, node, *_TYPES)
    offer_in_place(node)
    if source.type in _FLOATS:
        if source.type != TensorType.FLOAT32:
            # float16 and bfloat16 are computed in single precision and rounded once.
            context.add_temporary(node, source.shape, TensorType.FLOAT32)
        return
    if source.type == TensorType.INT16:
        from oplet_builtin_ops.arithmetic.sigmoid_table import input_scaling, logistic_int16

        ensure(output.scale == 1 / 32768, f"{output} has scale {output.scale:g}; LOGISTIC gives int16 with scale 1/32768.")
        scaling = input_scaling(source, output, shifts=(0,))
        prepare_lookup(node, lambda values: logistic_int16(values, scaling), scaling)
        return
    node.prepared = node.cached(("table", source.type, output.type), (), lambda: _logistic_table(source, output))


def _logistic_table(source: Tensor, output: Tensor) -> NDArray[Any]:
    def steps(x: NDArray[Any]) -> NDArray[Any]:
        values = np.float32(1) / (np.float32(1) + np.exp(-x.astype(np.float64)).astype(np.float32))
        # Halves, of which a scale of 1/256 gives none, are rounded as in XNNPACK, which alone takes other scales.
        return np.asarray(np.rint(values * (np.float32(1) / np.float32(output.scale)) + np.float32(output.zero_point)))

    return sampled_table(source.type, steps, source.scale, source.zero_point, 1.0, 0)


def _bind_logistic(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    if node.inputs[0].type not in _FLOATS:
        return bind_lookup(node)
    if not node.temporaries:
        return _chain(source, output)
    work = node.temporaries[0].data
    compute = _chain(work, work)

    def run() -> None:
        work[...] = source
        compute()
        output[...] = work

    return run


def _chain(source: NDArray[np.float32], output: NDArray[np.float32]) -> Thunk:
    one = np.array(1, np.float32)

    def run() -> None:
        # If exp(-x) is infinite the result is 0.
        np.negative(source, output)
        np.exp(output, output)
        np.add(output, one, output)
        np.divide(one, output, output)

    return run


def _prepare_tanh(context: Context, node: Node) -> None:
    source, output = prepare_unary(context, node, *_TYPES)
    offer_in_place(node)
    if source.type == TensorType.INT16:
        from oplet_builtin_ops.arithmetic.sigmoid_table import input_scaling, tanh_int16

        scaling = input_scaling(source, output, shifts=(0, 1))
        prepare_lookup(node, lambda values: tanh_int16(values, scaling), scaling)
    elif source.type not in _FLOATS:
        node.prepared = node.cached(("table", source.type, output.type), (), lambda: _tanh_table(source, output))


def _tanh_table(source: Tensor, output: Tensor) -> NDArray[Any]:
    return sampled_table(source.type, _tanh, source.scale, source.zero_point, output.scale, output.zero_point)


def _tanh(x: NDArray[Any]) -> NDArray[Any]:
    return np.tanh(x.astype(np.float64))


def _bind_tanh(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    if node.inputs[0].type not in _FLOATS:
        return bind_lookup(node)

    def run() -> None:
        np.tanh(source, output)

    return run


LOGISTIC = Registration(prepare=_prepare_logistic, bind=_bind_logistic, pure=True, types=_TYPES)
TANH = Registration(
    prepare=_prepare_tanh,
    bind=_bind_tanh,
    pure=True,
    types=_TYPES,
    differences="float16 stays within 1, where LiteRT's default mode (XNNPACK) gives 1.001",
)
