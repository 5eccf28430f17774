"""STABLEHLO_CONVOLUTION: convolution over any axes, with padding, dilation of both operands, and groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from oplet import Context, Node, Registration, Tensor, charge, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.windows import Axis
from oplet.schema.stablehlo_options import StablehloConvolutionOptions
from oplet_builtin_ops.arithmetic.numeric_products import assign_sums, product_type
from oplet_builtin_ops.layers.convolution_nd import Convolution
from oplet_builtin_ops.layers.program import Call, run_program
from oplet_builtin_ops.shaping.interior_padding import AxisPadding, padding_calls
from oplet_builtin_ops.stablehlo import FLOATS, INTEGERS, attribute, ensure_axes, ensure_not_quantized


@dataclass(frozen=True)
class Plan:
    """The convolution's axes in the tensors, and the convolution with canonical axes that is computed.

    Attributes:
        left: the batch axis, the spatial axes and the channel axis of the maps.
        right: the spatial axes of the filters, their channel axis, and the axis of filters.
        result: the batch axis, the spatial axes and the channel axis of the output.
        paddings: the padding of the maps along each axis of `left`.
        reversals: a slice for each axis of `right`, backwards where filters are reversed.
        work: the convolution of one group of the batch, by axes in the usual order.
        batch_groups: the number of such groups, each with its own filters.
    """

    left: list[int]
    right: list[int]
    result: list[int]
    paddings: list[AxisPadding]
    reversals: tuple[slice, ...]
    work: Convolution
    batch_groups: int


def _per_axis(name: str, given: list[int], rank: int) -> list[int]:
    numbers = given or [1] * rank
    ensure(len(numbers) == rank and min(numbers, default=1) > 0, f"{name} {numbers} must be {rank} numbers above zero.")
    return numbers


def _plan(options: StablehloConvolutionOptions, source: Tensor, filters: Tensor, output: Tensor) -> Plan:
    spatial = attribute(options.input_spatial_dimensions)
    left = [options.input_batch_dimension, *spatial, options.input_feature_dimension]
    right = [
        *attribute(options.kernel_spatial_dimensions),
        options.kernel_input_feature_dimension,
        options.kernel_output_feature_dimension,
    ]
    result = [options.output_batch_dimension, *attribute(options.output_spatial_dimensions), options.output_feature_dimension]
    rank = source.ndim
    for tensor, numbers in ((source, left), (filters, right), (output, result)):
        ensure(len(numbers) == rank, f"the options give {len(numbers)} dimensions for {tensor}, and {rank} for {source}.")
        ensure_axes(f"the dimension numbers for {tensor}", numbers, rank)
    ensure(filters.ndim == rank, f"the filters {filters} must have as many dimensions as {source}.")
    count = rank - 2
    strides = _per_axis("window_strides", attribute(options.window_strides), count)
    dilations = _per_axis("rhs_dilation", attribute(options.rhs_dilation), count)
    spreads = _per_axis("lhs_dilation", attribute(options.lhs_dilation), count)
    edges = attribute(options.padding) or [0] * (2 * count)
    ensure(len(edges) == 2 * count, f"the padding {edges} must be two numbers for each of {count} axes.")
    reversed_axes = attribute(options.window_reversal) or [False] * count
    ensure(len(reversed_axes) == count, f"window_reversal {reversed_axes} must be {count} booleans.")
    groups, batch_groups = options.feature_group_count, options.batch_group_count
    batch, channels = source.shape[left[0]], source.shape[left[-1]]
    inner, outer = filters.shape[right[-2]], filters.shape[right[-1]]
    ensure(groups > 0 and batch_groups > 0, f"feature_group_count {groups} and batch_group_count {batch_groups} must be above 0.")
    ensure(
        min(groups, batch_groups) == 1,
        f"only one of feature_group_count {groups} and batch_group_count {batch_groups} may be above 1.",
    )
    ensure(
        inner * groups == channels and outer % (groups * batch_groups) == 0 and batch % batch_groups == 0,
        f"{source} and the filters {filters} do not fit: {channels} channels in {groups} groups, filters of {inner} "
        f"channels, {outer} of them, batch {batch} in {batch_groups} groups.",
    )
    paddings = [AxisPadding(batch)]
    axes: list[Axis] = []
    for i, axis in enumerate(spatial):
        paddings.append(AxisPadding(source.shape[axis], edges[2 * i], edges[2 * i + 1], spreads[i] - 1))
        size, taps = max(0, paddings[-1].padded), filters.shape[right[i]]
        ensure(taps > 0, f"the filters {filters} must have taps.")
        span = (taps - 1) * dilations[i] + 1
        out = 0 if size < span else (size - span) // strides[i] + 1
        axes.append(Axis(size, taps, strides[i], dilations[i], out, 0))
    paddings.append(AxisPadding(channels))
    reversals = (*(slice(None, None, -1 if flag else 1) for flag in reversed_axes), slice(None), slice(None))
    work = Convolution(batch // batch_groups, axes, channels, outer // batch_groups, groups)
    return Plan(left, right, result, paddings, reversals, work, batch_groups)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, filters = node.inputs
    output = node.outputs[0]
    for tensor in (source, filters, output):
        ensure_type(tensor, *FLOATS, *INTEGERS)
        ensure(tensor.dtype.kind in "iu" or tensor.type == output.type, f"{tensor} and {output} must have the same type.")
    ensure(
        (source.dtype.kind in "iu") == (filters.dtype.kind in "iu"), f"{source} and {filters} must have types of the same kind."
    )
    ensure_not_quantized(source, filters, output)
    ensure(source.ndim >= 2, f"{source} must have a batch and a feature dimension.")
    plan = _plan(node.options(StablehloConvolutionOptions), source, filters, output)
    node.prepared = plan
    shape = [0] * source.ndim
    for axis, size in zip(plan.result, (plan.work.batch, *plan.work.out, plan.work.filters * plan.batch_groups)):
        shape[axis] = size
    context.resize_tensor(output, shape)
    compute = product_type(source.dtype, filters.dtype, output.type, plan.work.depth)
    maps = tuple(max(0, padding.padded) for padding in plan.paddings)
    sums = (plan.batch_groups, plan.work.batch, *plan.work.out, plan.work.filters)
    for scratch in (maps, tuple(filters.shape[axis] for axis in plan.right), (plan.work.columns_size,), sums):
        context.add_temporary(node, scratch, compute)


def bind(context: Context, node: Node) -> Thunk:
    plan: Plan = node.prepared
    source, filters = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data
    maps, weights, columns, sums = (temporary.data for temporary in node.temporaries)
    work = plan.work
    # The filters of one group of the batch.
    picked = weights
    if plan.batch_groups > 1:
        charge(weights.nbytes // plan.batch_groups)
        picked = np.empty((*weights.shape[:-1], work.filters), weights.dtype)

    def calls() -> Iterator[Call]:
        if maps.size:
            yield from padding_calls(source.transpose(plan.left), plan.paddings, np.zeros((), maps.dtype), maps)
        yield weights.__setitem__, (..., filters.transpose(plan.right)[plan.reversals])
        for group in range(plan.batch_groups):
            if plan.batch_groups > 1:
                yield picked.__setitem__, (..., weights[..., group * work.filters : (group + 1) * work.filters])
            images = maps[group * work.batch : (group + 1) * work.batch]
            yield from work.calls(images, picked, columns, sums[group], lambda block: [])
        # The groups of the batch become groups of features.
        yield assign_sums, (output.transpose(plan.result), np.moveaxis(sums, 0, -2))

    return run_program(calls)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*FLOATS, *INTEGERS))
