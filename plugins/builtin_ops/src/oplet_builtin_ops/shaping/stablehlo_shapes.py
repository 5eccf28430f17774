"""StableHLO operators that move values, or number them.

- BROADCAST_IN_DIM gives a tensor the output's shape, with its axes at the positions in the options.
- CONCATENATE, SLICE and TRANSPOSE do so along axes; RESHAPE and IOTA (0, 1, 2, ...) to the output's shape of the model.
- DYNAMIC_SLICE takes, and DYNAMIC_UPDATE_SLICE replaces, a block at a position that is an input, clamped so that the block is inside.

Semantics: see `oplet_builtin_ops.stablehlo`.
"""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, Registration, Tensor, ensure, ensure_type
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.axes import along
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.stablehlo_options import (
    StablehloBroadcastInDimOptions,
    StablehloConcatenateOptions,
    StablehloDynamicSliceOptions,
    StablehloIotaOptions,
    StablehloSliceOptions,
    StablehloTransposeOptions,
)
from oplet_builtin_ops.layers.program import run_calls
from oplet_builtin_ops.shaping.slice_updates import clamped_starts, ensure_scalar_starts, ensure_update_fits, update_thunk
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS, VALUES, attribute, declared_shape, ensure_axes, ensure_values


def _moved(node: Node) -> tuple[Tensor, Tensor]:
    """Check and return the input and the output of a node that moves the values of one tensor."""
    ensure_operands(node, 1)
    ensure_values(node.inputs[0])
    ensure_same_type(node.inputs[0], node.outputs[0])
    return node.inputs[0], node.outputs[0]


def _prepare_broadcast_in_dim(context: Context, node: Node) -> None:
    source, output = _moved(node)
    shape = declared_shape(output)
    axes = attribute(node.options(StablehloBroadcastInDimOptions).broadcast_dimensions)
    ensure(len(axes) == source.ndim, f"broadcast_dimensions {axes} must name one axis for each of {source}.")
    ensure_axes("broadcast_dimensions", axes, len(shape))
    ensure(
        all(dim in (1, shape[axis]) for dim, axis in zip(source.shape, axes)),
        f"{source} cannot be broadcast to {list(shape)} along {axes}: a dimension must be 1 or stay as it is.",
    )
    node.prepared = axes
    context.resize_tensor(output, shape)


def _bind_broadcast_in_dim(context: Context, node: Node) -> Thunk:
    source, output, axes = node.inputs[0].data, node.outputs[0].data, node.prepared
    aligned = source.transpose(np.argsort(axes)) if axes else source
    dims = dict(zip(axes, source.shape))
    return copier(output, aligned.reshape([dims.get(axis, 1) for axis in range(output.ndim)]))


def _prepare_concatenate(context: Context, node: Node) -> None:
    ensure_operands(node, max(1, len(node.inputs)))
    first, *others = node.inputs
    axis = node.options(StablehloConcatenateOptions).dimension
    ensure_values(first)
    ensure_axes("dimension", [axis], first.ndim)
    for tensor in others:
        ensure_same_type(first, tensor)
        fits = tensor.ndim == first.ndim and all(m == n for i, (m, n) in enumerate(zip(tensor.shape, first.shape)) if i != axis)
        ensure(fits, f"{tensor} and {first} must have the same shape but for dimension {axis}.")
    ensure_same_type(first, node.outputs[0])
    length = sum(tensor.shape[axis] for tensor in node.inputs)
    context.resize_tensor(node.outputs[0], (*first.shape[:axis], length, *first.shape[axis + 1 :]))


def _bind_concatenate(context: Context, node: Node) -> Thunk:
    axis = node.options(StablehloConcatenateOptions).dimension
    output = node.outputs[0].data
    program, start = [], 0
    for tensor in node.inputs:
        end = start + tensor.shape[axis]
        program.append((output[along(axis, slice(start, end))].__setitem__, (..., tensor.data)))
        start = end
    return run_calls(program)


def _prepare_dynamic_slice(context: Context, node: Node) -> None:
    ensure_operands(node, max(1, len(node.inputs)))
    source, *starts = node.inputs
    ensure_values(source)
    ensure_same_type(source, node.outputs[0])
    ensure_scalar_starts(source, starts)
    sizes = attribute(node.options(StablehloDynamicSliceOptions).slice_sizes)
    ensure(
        len(sizes) == source.ndim and all(0 <= size <= dim for size, dim in zip(sizes, source.shape)),
        f"slice_sizes {sizes} must be one size for each axis of {source}, none larger than the axis.",
    )
    context.resize_tensor(node.outputs[0], sizes)


def _bind_dynamic_slice(context: Context, node: Node) -> Thunk:
    source, *starts = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data

    def run() -> None:
        begins = clamped_starts([int(start.item()) for start in starts], source.shape, output.shape)
        output[...] = source[tuple(slice(begin, begin + size) for begin, size in zip(begins, output.shape))]

    return run


def _prepare_dynamic_update_slice(context: Context, node: Node) -> None:
    ensure_operands(node, max(2, len(node.inputs)))
    operand, update, *starts = node.inputs
    ensure_values(operand)
    ensure_same_type(operand, node.outputs[0])
    ensure_scalar_starts(operand, starts)
    ensure_update_fits(operand, update)
    context.resize_tensor(node.outputs[0], operand.shape)
    node.in_place = [operand]


def _bind_dynamic_update_slice(context: Context, node: Node) -> Thunk:
    operand, update, *starts = (tensor.data for tensor in node.inputs)
    return update_thunk(operand, update, starts, node.outputs[0].data)


#: The numbers that are written at a time.
_PART = 1 << 20


def _prepare_iota(context: Context, node: Node) -> None:
    ensure(not node.inputs and len(node.outputs) == 1, "STABLEHLO_IOTA takes no input and gives one output.")
    output = node.outputs[0]
    ensure_type(output, *FLOATS, *INTEGERS, *COMPLEX)
    shape = declared_shape(output)
    ensure_axes("iota_dimension", [node.options(StablehloIotaOptions).iota_dimension], len(shape))
    context.resize_tensor(output, shape)


def _bind_iota(context: Context, node: Node) -> Thunk:
    axis, output = node.options(StablehloIotaOptions).iota_dimension, node.outputs[0].data
    last = np.moveaxis(output, axis, -1)

    def run() -> None:
        for start in range(0, last.shape[-1] if output.size else 0, _PART):
            end = min(start + _PART, last.shape[-1])
            last[..., start:end] = np.arange(start, end).astype(output.dtype)

    return run


def _prepare_reshape(context: Context, node: Node) -> None:
    source, output = _moved(node)
    shape = declared_shape(output)
    ensure(prod(shape) == source.size, f"{source} has {source.size} values, which cannot be given the shape {list(shape)}.")
    context.resize_tensor(output, shape)
    node.in_place = [source]


def _bind_reshape(context: Context, node: Node) -> Thunk:
    return copier(node.outputs[0].data.reshape(-1), node.inputs[0].data.reshape(-1))


def _prepare_slice(context: Context, node: Node) -> None:
    source, output = _moved(node)
    options = node.options(StablehloSliceOptions)
    starts, limits, strides = (attribute(v) for v in (options.start_indices, options.limit_indices, options.strides))
    rank = source.ndim
    ensure(
        len(starts) == len(limits) == len(strides) == rank,
        f"starts {starts}, limits {limits} and strides {strides} must be {rank} numbers each, one for each axis of {source}.",
    )
    for start, limit, stride, dim in zip(starts, limits, strides, source.shape):
        ensure(
            0 <= start <= limit <= dim and stride > 0,
            f"a slice from {start} to {limit} in steps of {stride} is not inside a dimension of {dim}.",
        )
    node.prepared = tuple(map(slice, starts, limits, strides))
    context.resize_tensor(output, [-(-(limit - start) // stride) for start, limit, stride in zip(starts, limits, strides)])


def _bind_slice(context: Context, node: Node) -> Thunk:
    return copier(node.outputs[0].data, node.inputs[0].data[node.prepared])


def _prepare_transpose(context: Context, node: Node) -> None:
    source, output = _moved(node)
    order = attribute(node.options(StablehloTransposeOptions).permutation)
    ensure_axes("permutation", order, source.ndim)
    ensure(len(order) == source.ndim, f"the permutation {order} must name every axis of {source}.")
    node.prepared = order
    context.resize_tensor(output, [source.shape[axis] for axis in order])


def _bind_transpose(context: Context, node: Node) -> Thunk:
    return copier(node.outputs[0].data, node.inputs[0].data.transpose(node.prepared))


STABLEHLO_BROADCAST_IN_DIM = Registration(prepare=_prepare_broadcast_in_dim, bind=_bind_broadcast_in_dim, pure=True, types=VALUES)
STABLEHLO_CONCATENATE = Registration(prepare=_prepare_concatenate, bind=_bind_concatenate, pure=True, types=VALUES)
STABLEHLO_DYNAMIC_SLICE = Registration(prepare=_prepare_dynamic_slice, bind=_bind_dynamic_slice, pure=True, types=VALUES)
STABLEHLO_DYNAMIC_UPDATE_SLICE = Registration(
    prepare=_prepare_dynamic_update_slice, bind=_bind_dynamic_update_slice, pure=True, types=VALUES
)
STABLEHLO_IOTA = Registration(prepare=_prepare_iota, bind=_bind_iota, pure=True, types=(*FLOATS, *INTEGERS, *COMPLEX))
STABLEHLO_RESHAPE = Registration(prepare=_prepare_reshape, bind=_bind_reshape, pure=True, types=VALUES)
STABLEHLO_SLICE = Registration(prepare=_prepare_slice, bind=_bind_slice, pure=True, types=VALUES)
STABLEHLO_TRANSPOSE = Registration(prepare=_prepare_transpose, bind=_bind_transpose, pure=True, types=VALUES)
