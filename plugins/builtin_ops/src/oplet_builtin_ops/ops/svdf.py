"""SVDF: a layer whose weights are factored into a feature part and a time part; its state has the last features.

Float, hybrid (float activations, int8 feature weights) and integer (int8 activations, int16 state). The state is a variable tensor,
(batches, filters * memory), which is shifted by one step at each invoke.

Numerics: tflite/kernels/svdf.cc, tflite/kernels/internal/reference/svdf.h. An int8 state with its own zero point is tflite-micro's
(tensorflow/lite/micro/kernels/svdf_common.cc); LiteRT reads it as int16, past its end.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import ensure_scale, quantize_multiplier
from oplet.kernels.operands import ensure_operands
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import SVDFOptions
from oplet_builtin_ops.arithmetic.fused_activations import apply_activation
from oplet_builtin_ops.arithmetic.requantize import Requantizer
from oplet_builtin_ops.arithmetic.scaling import rescaler
from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_builtin_ops.layers.program import Call, convert, run_calls
from oplet_builtin_ops.layers.quantized_layer import exact_type

#: The types of feature weights, time weights, bias and state for each kind of node.
_FLOAT = (TensorType.FLOAT32, TensorType.FLOAT32, TensorType.FLOAT32, TensorType.FLOAT32)
_HYBRID = ((TensorType.INT8, TensorType.UINT8), (TensorType.INT8, TensorType.UINT8), TensorType.FLOAT32, TensorType.FLOAT32)
_INTEGER = (TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT16)
_ALL_INT8 = (TensorType.INT8, TensorType.INT8, TensorType.INT32, TensorType.INT8)
_TYPES = (TensorType.FLOAT32, TensorType.INT8)


def prepare(context: Context, node: Node) -> None:
    ensure(len(node.inputs) == 5, f"it has {len(node.inputs)} inputs and takes 5.")
    ensure_operands(node, 3, optional=2)
    ensure(node.has_input(4), "input 4, the state, is left out (-1) and may not be.")
    source, features, times, bias, state = *node.inputs[:3], node.optional_input(3), node.inputs[4]
    output, options = node.outputs[0], node.options(SVDFOptions)
    ensure(source.ndim == 2, f"{source} must have 2 dimensions.")
    ensure(features.ndim == 2 and times.ndim == 2, f"{features} and {times} must have 2 dimensions.")
    batches, depth = source.shape
    filters, memory = times.shape
    ensure(features.shape == (filters, depth), f"{features} must have shape {[filters, depth]}, to match {source} and {times}.")
    ensure(memory > 0, f"{times} must have at least one step.")
    ensure(
        options.rank > 0 and filters % options.rank == 0, f"rank is {options.rank}, which does not divide the {filters} filters."
    )
    units = filters // options.rank
    ensure(bias is None or bias.shape == (units,), f"{bias} must have {units} values, one for each output.")
    ensure(state.is_variable, f"the state {state} must be a variable tensor.")
    ensure(state.shape == (batches, filters * memory), f"the state {state} must have shape {[batches, filters * memory]}.")
    ensure_type(source, *_TYPES)
    ensure(source.type == output.type, f"{source} and {output} must have the same type.")
    context.resize_tensor(output, (batches, units))
    if source.type == TensorType.INT8:
        _ensure_types(node, _ALL_INT8 if state.type == TensorType.INT8 else _INTEGER)
        activation = options.fused_activation_function
        ensure(activation == ActivationFunctionType.RELU, f"{activation.name} is fused; a node of integers can only have RELU.")
        node.prepared = _factor(source, features, state), _factor(state, times, output)
        _add_integer_scratch(context, node)
        return
    layer = None
    if features.type != TensorType.FLOAT32:
        _ensure_types(node, _HYBRID)
        ensure_scale(times)
        asymmetric = options.asymmetric_quantize_inputs
        layer = HybridLayer(node, source, features, None, 0, asymmetric, ActivationFunctionType.NONE, batches)
        layer.add_scratch(context)
    else:
        _ensure_types(node, _FLOAT)
    context.add_temporary(node, (batches, filters), TensorType.FLOAT32 if layer is None else layer.compute)
    context.add_temporary(node, (batches, filters, memory), TensorType.FLOAT32)
    node.prepared = layer, node.temporaries[-2], node.temporaries[-1]


def _add_integer_scratch(context: Context, node: Node) -> None:
    """Request the scratch memory that `_integer_calls` uses, in its order."""
    (batches, depth), (filters, memory), (_, units) = (node.inputs[0].shape, node.inputs[2].shape, node.outputs[0].shape)
    compute = exact_type(128.0 * 128.0 * depth)
    context.add_temporary(node, (batches, depth), compute)
    context.add_temporary(node, (batches, filters), compute)
    context.add_temporary(node, (batches, filters), TensorType.INT16)
    context.add_temporary(node, (batches, filters), TensorType.FLOAT64)
    context.add_temporary(node, (batches, filters, memory), TensorType.FLOAT64)
    context.add_temporary(node, (batches, units), TensorType.FLOAT64)
    context.add_temporary(node, (batches, units), TensorType.INT32)


def _factor(a: Tensor, b: Tensor, c: Tensor) -> float:
    """Return scale(a) * scale(b) / scale(c), the rescaling of products of a and b to c, in float32 as LiteRT does."""
    scales = [np.float32(ensure_scale(tensor)) for tensor in (a, b, c)]
    with np.errstate(all="ignore"):
        return float(scales[0] * scales[1] / scales[2])


def _ensure_types(node: Node, types: tuple[TensorType | tuple[TensorType, ...], ...]) -> None:
    for tensor, allowed in zip([*node.inputs[1:3], node.optional_input(3), node.inputs[4]], types):
        if tensor is not None:
            ensure_type(tensor, *(allowed if isinstance(allowed, tuple) else (allowed,)))


def bind(context: Context, node: Node) -> Thunk:
    make = _integer_calls if node.inputs[0].type == TensorType.INT8 else _float_calls
    weights = [tensor for tensor in (node.inputs[1], node.inputs[2], node.optional_input(3)) if tensor is not None]
    if all(tensor.is_constant for tensor in weights):
        return run_calls(make(node))
    return lambda: run_calls(make(node))()


def _shift_calls(state: Array) -> list[Call]:
    """Return numpy calls that shift each filter's state by one step, dropping the oldest.

    All states are moved by one flat copy. It puts the next filter's first value at each end, where the new value is written next.
    """
    flat = state.reshape(-1)
    return [(np.copyto, (flat[:-1], flat[1:]))]


def _float_calls(node: Node) -> list[Call]:
    source, features, times, _, state_tensor = node.inputs
    bias, output, options = node.optional_input(3), node.outputs[0].data, node.options(SVDFOptions)
    layer, products_tensor, weighted_tensor = node.prepared
    products, weighted = products_tensor.data, weighted_tensor.data
    state = state_tensor.data.reshape(weighted.shape)
    if not state.size:
        return []
    calls = _shift_calls(state)
    if layer is None:
        calls += [(np.matmul, (source.data, features.data.T, products)), (np.copyto, (state[..., -1], products))]
        time_weights = times.data
    else:
        factors = np.empty((layer.batches, layer.channels), np.float32)
        calls += layer.quantize(factors)
        calls += [
            (np.matmul, (layer.quantized.data, layer.rows().T.astype(products.dtype), products)),
            (np.multiply, (products, factors, products)),
            (convert, (state[..., -1], products)),
        ]
        time_weights = _signed(times).astype(np.float32) * np.float32(times.scale)
    calls.append((np.multiply, (state, time_weights, weighted)))
    by_unit = weighted.reshape(*output.shape, options.rank * weighted.shape[2])
    calls.append((np.matmul, (by_unit, np.ones(by_unit.shape[2], np.float32), output)))
    if bias is not None:
        calls.append((np.add, (output, bias.data, output)))
    return [*calls, (apply_activation, (output, options.fused_activation_function))]


def _signed(weights: Tensor) -> Array:
    return weights.data.view(np.int8) if weights.data.dtype == np.uint8 else weights.data


def _integer_calls(node: Node) -> list[Call]:
    source, features, times, _, state_tensor = node.inputs
    bias, output = node.optional_input(3), node.outputs[0]
    columns, products, newest, scratch, weighted, sums, totals = (temporary.data for temporary in node.temporaries)
    state = state_tensor.data.reshape(weighted.shape)
    if not state.size:
        return []
    first, second = node.prepared
    filters = newest.shape[1]
    rows = features.data.astype(columns.dtype)
    offsets = features.data.sum(axis=1, dtype=np.int64) * -source.zero_point
    limits = np.abs(rows).sum(axis=1, dtype=np.float64) * 128 + np.abs(offsets)
    remembered = np.iinfo(state.dtype)
    remember = Requantizer(np.full(filters, first), offsets, limits, 0, remembered.min, remembered.max)
    shift: list[Call] = []
    centre: list[Call] = []
    centred = state
    if state_tensor.type == TensorType.INT8 and (zero_point := state_tensor.zero_point):
        shift = [(np.add, (newest, np.int16(zero_point), newest))]
        centre, centred = [(np.subtract, (state, np.float64(zero_point), weighted))], weighted
    time_weights = times.data.astype(np.float64)
    # These sums may be too large to be scaled as floats; memory that is free by then stores them as integers.
    wide, spare = (array.reshape(-1).view(np.int64)[: sums.size] for array in (scratch, weighted))
    finish = rescaler(
        totals.reshape(-1), wide, spare, *quantize_multiplier(second), output.zero_point, (-128, 127), output.data.reshape(-1)
    )
    by_unit = weighted.reshape(*sums.shape, -1)
    add_bias: list[Call] = [] if bias is None else [(np.add, (sums, bias.data.astype(np.float64), sums))]
    return [
        *_shift_calls(state),
        (convert, (columns, source.data)),
        (np.matmul, (columns, rows.T, products)),
        *remember.calls(products, newest, scratch),
        *shift,
        (np.copyto, (state[..., -1], newest)),
        *centre,
        (np.multiply, (centred, time_weights, weighted)),
        (np.matmul, (by_unit, np.ones(by_unit.shape[2]), sums)),
        *add_bias,
        (convert, (wide, sums.reshape(-1))),
        (convert, (totals.reshape(-1), wide)),
        (finish, ()),
    ]


REGISTRATION = Registration(
    prepare=prepare, bind=bind, types=_TYPES, differences="takes an int8 state as tflite-micro does; LiteRT reads past its end"
)
