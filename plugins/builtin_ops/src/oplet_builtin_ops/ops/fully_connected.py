"""FULLY_CONNECTED: the input's rows multiplied with the rows of the weights.

Float, quantized (uint8, int8, int16), hybrid (float activations; weights of 8, 4 or 2 bits, with one scale, one per row or one per
block of a row), sparse weights, and weights shuffled into 4x16 blocks. Numerics: tflite/kernels/fully_connected.cc,
tflite/kernels/internal/reference/fully_connected.h and integer_ops/fully_connected.h
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_fits, ensure_type
from oplet.kernels.activations import CLAMPS
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.enums import FullyConnectedOptionsWeightsFormat
from oplet.schema.options import FullyConnectedOptions
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers import remark

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.float_rows import FloatRows
    from oplet_builtin_ops.layers.hybrid_rows import HybridRows
    from oplet_builtin_ops.layers.quantized_rows import QuantizedRows
    from oplet_builtin_ops.layers.shuffled import ShuffledLayer

#: Modules that only some nodes need, by the types of their inputs; builds leave out those that no node of their models needs.
VARIANTS = {
    "oplet_builtin_ops.layers.float_rows": {"inputs": ((TensorType.FLOAT32,), (TensorType.FLOAT32,))},
    "oplet_builtin_ops.layers.hybrid_rows": {
        "inputs": ((TensorType.FLOAT32,), (TensorType.UINT8, TensorType.INT8, TensorType.INT4, TensorType.INT2))
    },
    "oplet_builtin_ops.layers.quantized_rows": {"inputs": ((TensorType.UINT8, TensorType.INT8, TensorType.INT16),)},
    "oplet_builtin_ops.layers.shuffled": {"inputs": ((TensorType.UINT8,), (TensorType.UINT8,))},
}

_SHUFFLED = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8
_NARROW = (TensorType.INT8, TensorType.INT4, TensorType.INT2)
#: The types of weights and output by the type of the input.
_TYPES = {
    TensorType.FLOAT32: ((TensorType.FLOAT32, TensorType.UINT8, *_NARROW), (TensorType.FLOAT32,)),
    TensorType.UINT8: ((TensorType.UINT8,), (TensorType.UINT8, TensorType.INT16)),
    TensorType.INT8: (_NARROW, (TensorType.INT8,)),
    TensorType.INT16: ((*_NARROW, TensorType.INT16), (TensorType.INT16,)),
}


def check_rows(context: Context, node: Node) -> FloatRows | QuantizedRows | HybridRows | ShuffledLayer:
    """Check a FULLY_CONNECTED and set its output's shape; return its rows, which are yet to plan how they are multiplied.

    Raises:
        EnsureError: it cannot be computed.
    """
    options = node.options(FullyConnectedOptions)
    shuffled = options.weights_format == _SHUFFLED
    ensure_operands(node, 2, 2 if shuffled else 1, optional=1)
    source, weights = node.inputs[:2]
    bias, output = node.optional_input(2), node.outputs[0]
    ensure_type(source, *_TYPES)
    ensure(weights.ndim == 2, lambda: f"the weights {weights} must have 2 dimensions.")
    units = weights.shape[0]
    count = _rows(source, weights, options)
    ensure(bias is None or bias.size == units, lambda: f"{bias} must have {units} values, one for each row of {weights}.")
    if options.keep_num_dims:
        context.resize_tensor(output, (*source.shape[:-1], units))
    else:
        context.resize_tensor(output, (count, units))
    if shuffled:
        from oplet_builtin_ops.layers.shuffled import ShuffledLayer

        return ShuffledLayer(context, node, count, options.fused_activation_function)
    ensure_type(weights, *_TYPES[source.type][0])
    ensure_type(output, *_TYPES[source.type][1])
    hybrid = source.type == TensorType.FLOAT32 and weights.type != TensorType.FLOAT32
    activation = options.fused_activation_function
    ensure(hybrid or activation in CLAMPS, lambda: f"{activation.name} cannot be fused into this op.")
    if source.type != TensorType.FLOAT32:
        from oplet_builtin_ops.layers.quantized_rows import QuantizedRows

        return QuantizedRows(node, count, activation)
    if hybrid:
        from oplet_builtin_ops.layers.hybrid_rows import HybridRows

        return HybridRows(context, node, count, options)
    from oplet_builtin_ops.layers.float_rows import FloatRows

    return FloatRows(node, count, activation)


def _rows(source: Tensor, weights: Tensor, options: FullyConnectedOptions) -> int:
    """Return the number of input rows, after checking that their length is the weights' depth."""
    depth = weights.shape[1]
    if options.keep_num_dims:
        ensure_fits(
            source.ndim > 0 and source.shape[-1] == depth,
            lambda: f"the last dimension of {source} must be {depth}, as the weights {weights} have it.",
        )
    if source.size == 0 and depth == 0:
        rows = 1
        for dim in source.shape[:-1]:
            rows *= dim
        return rows
    ensure_fits(
        depth > 0 and source.size % depth == 0,
        lambda: f"{source} cannot be cut into rows of {depth}, as the weights {weights} take them.",
    )
    return source.size // depth


def prepare(context: Context, node: Node) -> None:
    node.prepared = rows = check_rows(context, node)
    rows.plan(context)


def bind(context: Context, node: Node) -> Thunk:
    if not node.outputs[0].size:
        return lambda: None
    thunk: Thunk = node.prepared.thunk()
    return thunk


# XNNPACK, which alone runs half-precision layers with quantized weights, computes each row's zero point from its values.
REGISTRATION = takes_halves(
    Registration(prepare=prepare, bind=bind, pure=True, sparse=frozenset({1}), types=tuple(_TYPES), remark=remark),
    0,
    1,
    mixed=True,
    options={"asymmetric_quantize_inputs": True},
)
