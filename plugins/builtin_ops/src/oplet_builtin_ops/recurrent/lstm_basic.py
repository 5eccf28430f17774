"""The basic kernel of LSTM: one step, with the weights of all gates in one matrix; float, or uint8 with an int16 state.

The last output and state are inputs, which the kernel overwrites with the new ones. Numerics: LstmCell in
tflite/kernels/internal/optimized/optimized_ops.h, the BASIC part of tflite/kernels/lstm.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip, ensure_scale, quantize_multiplier
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.arithmetic.gate_tables import logistic_table, tanh_table
from oplet_builtin_ops.arithmetic.integer_products import shift_calls
from oplet_builtin_ops.arithmetic.scaling import power_of_two_exponent
from oplet_builtin_ops.layers.program import Call, convert
from oplet_builtin_ops.recurrent.lstm_float import sigmoid_calls
from oplet_builtin_ops.recurrent.lstm_integer import look_up_calls

__all__ = ["bind_basic", "prepare_basic"]

_FLOAT = (TensorType.FLOAT32,) * 9
_INTEGER = (
    TensorType.UINT8, TensorType.UINT8, TensorType.UINT8, TensorType.INT32, TensorType.INT16,
    TensorType.UINT8, TensorType.INT16, TensorType.UINT8, TensorType.INT16,
)  # fmt: skip
_INT16 = np.array(-32768, np.int64), np.array(32767, np.int64)
_INT8 = np.array(-128, np.int64), np.array(127, np.int64)


def prepare_basic(context: Context, node: Node) -> None:
    """Check a basic LSTM node and set its output shapes: output, cell state, and two for intermediate results."""
    ensure_operands(node, 5, 4)
    source, last, weights, bias, state = node.inputs
    ensure(source.ndim == 2, f"{source} must have 2 dimensions.")
    ensure(last.ndim == 2, f"the last output {last} must have 2 dimensions.")
    batches, depth = source.shape
    cells = last.shape[1]
    for tensor, shape, what in (
        (last, (batches, cells), "last output"),
        (weights, (4 * cells, depth + cells), "weights"),
        (bias, (4 * cells,), "bias"),
        (state, (batches, cells), "last state"),
    ):
        ensure(tensor.shape == shape, f"the {what} {tensor} must have shape {list(shape)}.")
    types = tuple(tensor.type for tensor in (*node.inputs, *node.outputs))
    ensure(types in (_FLOAT, _INTEGER), f"the basic LSTM kernel does not take types {', '.join(type.name for type in types)}.")
    for tensor in (last, state):
        ensure(not tensor.is_constant, f"{tensor} is constant, and the basic LSTM kernel writes its new state there.")
    if types == _INTEGER:
        exponent = power_of_two_exponent(ensure_scale(node.outputs[1]))
        ensure(exponent == -11, f"the state {node.outputs[1]} has scale {node.outputs[1].scale:g}; it must be 2**-11.")
        ensure_scale(bias)
    for output, shape in zip(node.outputs, ((batches, cells), (batches, cells), (batches, depth + cells), (batches, 4 * cells))):
        context.resize_tensor(output, shape)


def bind_basic(context: Context, node: Node) -> Thunk:
    """Return the function that runs a prepared basic LSTM node."""
    _, last, weights, bias, state = node.inputs
    for tensor in (last, state):
        if not tensor.has_data:
            # No node writes it, so that it starts from zero.
            tensor.data = np.zeros(tensor.shape, tensor.dtype)
    make = _float_calls if weights.type == TensorType.FLOAT32 else _integer_calls
    fixed = make(node) if weights.is_constant and bias.is_constant else None

    def run() -> None:
        with np.errstate(over="ignore"):
            for function, arguments in make(node) if fixed is None else fixed:
                function(*arguments)
        last.data[...] = node.outputs[0].data
        state.data[...] = node.outputs[1].data

    return run


def _gates(values: Array, cells: int) -> tuple[Array, ...]:
    """Split (batches, 4 * cells) into views of the input, cell, forget and output gate."""
    return tuple(values[:, i * cells : (i + 1) * cells] for i in range(4))


def _join_calls(node: Node, joined: Array) -> list[Call]:
    source, last = node.inputs[0].data, node.inputs[1].data
    depth = source.shape[1]
    return [(np.copyto, (joined[:, :depth], source)), (np.copyto, (joined[:, depth:], last))]


def _float_calls(node: Node) -> list[Call]:
    _, _, weights, bias, state = (tensor.data for tensor in node.inputs)
    output, next_state, joined, sums = (tensor.data for tensor in node.outputs)
    values = np.empty_like(sums)
    taken, cell, forget, given = _gates(values, output.shape[1])
    calls: list[Call] = [*_join_calls(node, joined), (np.matmul, (joined, weights.T, sums)), (np.add, (sums, bias, sums))]
    calls.append((np.copyto, (values, sums)))
    calls += [*sigmoid_calls(taken), (np.tanh, (cell, cell)), *sigmoid_calls(values[:, 2 * output.shape[1] :])]
    calls += [(np.multiply, (taken, cell, cell)), (np.multiply, (forget, state, forget)), (np.add, (cell, forget, next_state))]
    return [*calls, (np.tanh, (next_state, cell)), (np.multiply, (given, cell, output))]


def _integer_calls(node: Node) -> list[Call]:
    weights, bias = node.inputs[2], node.inputs[3]
    state = node.inputs[4].data
    output, next_state, joined, sums = (tensor.data for tensor in node.outputs)
    batches, cells = output.shape
    wide, real = np.empty(sums.shape, np.int64), np.empty(sums.shape, np.float64)
    centred = np.empty(joined.shape, np.float64)
    matrix = (weights.data.astype(np.float64) - weights.zero_point).T
    multiplier, shift = quantize_multiplier(4096.0 * bias.scale)
    calls: list[Call] = [
        *_join_calls(node, joined),
        (np.subtract, (joined, np.float64(128), centred)),
        (np.matmul, (centred, matrix, real)),
        (convert, (wide, real)),
        (np.add, (wide, bias.data.astype(np.int64), wide)),
        *_rescale_calls(wide, multiplier, shift),
        (clip, (wide, *_INT16, wide)),
        (convert, (sums, wide)),
    ]
    taken, cell, forget, given = _gates(wide, cells)
    spare, product = np.empty((batches, cells), np.int64), np.empty((batches, cells), np.int64)
    for values, table in (
        (taken, logistic_table()),
        (cell, tanh_table(3)),
        (forget, logistic_table()),
        (given, logistic_table()),
    ):
        calls += look_up_calls(table, values, spare, values)
    calls += [*_product_calls(taken, cell, product), *shift_calls(product, 4, spare)]
    calls += [(np.copyto, (cell, state)), *_product_calls(forget, cell, cell)]
    calls += [(np.add, (product, cell, product)), (clip, (product, *_INT16, product)), (convert, (next_state, product))]
    # The state has 4 integer bits, the argument of tanh has 3.
    calls += [(np.left_shift, (product, _scalar(1), product)), (clip, (product, *_INT16, product))]
    calls += [*look_up_calls(tanh_table(3), product, spare, product), *_product_calls(given, product, product)]
    calls += [*shift_calls(product, 8, spare), (clip, (product, *_INT8, product))]
    return [*calls, (np.add, (product, _scalar(128), product)), (convert, (output, product))]


def _rescale_calls(values: Array, multiplier: int, shift: int) -> list[Call]:
    """Return numpy calls: values * multiplier * 2**(shift - 31) in place, both roundings with ties up as in LiteRT's matrix
    library.
    """
    calls: list[Call] = [
        (np.left_shift, (values, _scalar(max(shift, 0)), values)),
        (np.multiply, (values, _scalar(multiplier), values)),
    ]
    for amount in (31, max(-shift, 0)):
        calls += [(np.add, (values, _scalar((1 << amount) >> 1), values)), (np.right_shift, (values, _scalar(amount), values))]
    return calls


def _product_calls(a: Array, b: Array, target: Array) -> list[Call]:
    """Return numpy calls: target = a * b * 2**-15 to nearest, saturated to int16."""
    return [
        (np.multiply, (a, b, target)),
        (np.add, (target, _scalar(1 << 14), target)),
        (np.right_shift, (target, _scalar(15), target)),
        (clip, (target, *_INT16, target)),
    ]


def _scalar(value: int) -> Any:
    return np.array(value, np.int64)
