"""STABLEHLO_DOT_GENERAL: products of matrices whose rows, columns and batches may each be several axes."""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, Registration, Tensor, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.stablehlo_options import StablehloDotGeneralOptions
from oplet_builtin_ops.arithmetic.numeric_products import assign_sums, product_type
from oplet_builtin_ops.layers.program import Call, run_calls
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS, attribute, ensure_axes, ensure_not_quantized


def _axes(tensor: Tensor, batching: list[int], contracting: list[int]) -> list[int]:
    """Check the axes and return the ones that are neither batching nor contracting."""
    ensure_axes(f"batching and contracting dimensions of {tensor}", batching + contracting, tensor.ndim)
    return [axis for axis in range(tensor.ndim) if axis not in batching + contracting]


def _dims(tensor: Tensor, axes: list[int]) -> Shape:
    return tuple(tensor.shape[axis] for axis in axes)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    left, right = node.inputs
    output = node.outputs[0]
    for tensor in (left, right, output):
        ensure_type(tensor, *FLOATS, *INTEGERS, *COMPLEX)
        ensure(tensor.dtype.kind in "iu" or tensor.type == output.type, f"{tensor} and {output} must have the same type.")
    ensure((left.dtype.kind in "iu") == (right.dtype.kind in "iu"), f"{left} and {right} must have types of the same kind.")
    ensure_not_quantized(left, right, output)
    options = node.options(StablehloDotGeneralOptions)
    left_batch, right_batch = attribute(options.lhs_batching_dimensions), attribute(options.rhs_batching_dimensions)
    left_inner, right_inner = attribute(options.lhs_contracting_dimensions), attribute(options.rhs_contracting_dimensions)
    rows, columns = _axes(left, left_batch, left_inner), _axes(right, right_batch, right_inner)
    for name, a, b in (("batching", left_batch, right_batch), ("contracting", left_inner, right_inner)):
        ensure(
            _dims(left, a) == _dims(right, b), f"the {name} dimensions {a} of {left} and {b} of {right} must have the same sizes."
        )
    context.resize_tensor(output, _dims(left, left_batch) + _dims(left, rows) + _dims(right, columns))
    batches, depth = _dims(left, left_batch), prod(_dims(left, left_inner))
    shapes = (*batches, prod(_dims(left, rows)), depth), (*batches, depth, prod(_dims(right, columns)))
    node.prepared = (left_batch + rows + left_inner, right_batch + right_inner + columns), shapes
    compute = product_type(left.dtype, right.dtype, output.type, depth)
    for tensor in node.inputs:
        context.add_temporary(node, tensor.shape, compute)
    context.add_temporary(node, output.shape, compute)


def bind(context: Context, node: Node) -> Thunk:
    orders, shapes = node.prepared
    *operands, result = (temporary.data for temporary in node.temporaries)
    output = node.outputs[0].data
    program: list[Call] = []
    factors: list[Array] = []
    for tensor, order, shape, scratch in zip(node.inputs, orders, shapes, operands):
        source = tensor.data.transpose(order)
        if source.dtype == scratch.dtype and order == sorted(order):
            factors.append(source.reshape(shape))
            continue
        target = scratch.reshape(source.shape)
        program.append((target.__setitem__, (..., source)))
        factors.append(target.reshape(shape))
    exact = result.dtype == output.dtype
    matrices = (output if exact else result).reshape(*shapes[0][:-1], shapes[1][-1])
    program.append((np.matmul, (*factors, matrices)))
    if not exact:
        program.append((assign_sums, (output, result)))
    return run_calls(program)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*FLOATS, *INTEGERS, *COMPLEX))
