"""odml.group_norm: what litert-torch writes for LayerNorm and GroupNorm: (x - mean) / sqrt(variance + epsilon) * weight + bias.

    x               (..., size) for layers, (batch, height, width, channels) for groups
    weight, bias    the last dimensions of x for layers, (channels,) for groups
    output          as x

Attributes: `epsilon` and

    num_groups = 1, channel_axis = 1                                  a layer: mean and variance along the dimensions of the weight
    sub_type = 1                                                      the same
    num_groups, channel_axis = 3, reduction_axes = [3]                groups of neighbouring channels, in channels-last order

Numerics: PyTorch's layer_norm and group_norm, as litert_torch/generative/layers/normalization.py, generative/export_hf/core/speech/asr_model.py
and _convert/fx_passes/optimize_layout_transposes_pass/layout_rewrite.py call them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from oplet import Context, Node, Registration, TensorType, decline
from oplet.kernels.arrays import Array, Thunk
from oplet_builtin_ops.layers.attributes import Attributes, ensure_single
from oplet_builtin_ops.layers.normalization import normalized_rows
from oplet_builtin_ops.layers.program import Call, run_calls, run_program


def prepare(context: Context, node: Node) -> None:
    attributes = Attributes(node, "epsilon", "num_groups", "channel_axis", "reduction_axes", "sub_type")
    epsilon = attributes.number("epsilon", least=0)
    ensure_single(node, 3)
    x, weight, bias = node.inputs
    if weight.shape != bias.shape or not weight.ndim:
        decline(f"{weight} and {bias} are not of one shape, of one dimension or more.")
    shape = x.shape
    groups = 0
    rest = {name: value for name, value in attributes.values.items() if name != "epsilon"}
    if rest == {"num_groups": 1, "channel_axis": 1} or rest == {"sub_type": 1}:
        if shape[len(shape) - weight.ndim :] != weight.shape or weight.ndim > len(shape):
            decline(f"{weight} has not the last dimensions of {x}.")
        if "sub_type" not in rest and weight.ndim == 1 and len(shape) > 2 and shape[1] == shape[-1]:
            decline(f"dimension 1 of {x} has as many values as the last, and either may be meant.")
        context.add_temporary(node, (*shape[: len(shape) - weight.ndim], 1))
    elif rest == {"num_groups": rest.get("num_groups"), "channel_axis": 3, "reduction_axes": [3]}:
        groups = attributes.whole("num_groups")
        if len(shape) != 4 or weight.shape != shape[3:] or groups < 1 or shape[3] % groups:
            decline(f"{weight} and {groups} groups do not fit {x}.")
        for of in ((shape[0], groups), (shape[0], shape[3])):
            context.add_temporary(node, of, TensorType.FLOAT64)
        context.add_temporary(node, (shape[0], 1, groups, 1))
        context.add_temporary(node, shape)
    else:
        decline(f"the attributes {rest} are none that litert-torch writes.")
    node.prepared = epsilon, groups
    context.resize_tensor(node.outputs[0], shape)


def bind(context: Context, node: Node) -> Thunk:
    (epsilon, groups), y = node.prepared, node.outputs[0].data
    x, weight, bias = (tensor.data for tensor in node.inputs)
    temporaries = [temporary.data for temporary in node.temporaries]
    if not y.size:
        return lambda: None
    if groups:
        return run_calls(_grouped(x, y, epsilon, groups, weight, bias, *temporaries))
    size = math.prod(weight.shape)
    rows, result, work = x.reshape(-1, size), y.reshape(-1, size), temporaries[0].reshape(-1, 1)
    return run_program(partial(normalized_rows, rows, result, work, epsilon, weight.reshape(-1), bias.reshape(-1), centred=True))


def _grouped(
    x: Array,
    y: Array,
    epsilon: float,
    groups: int,
    weight: Array,
    bias: Array,
    sums: Array,
    columns: Array,
    each: Array,
    squares: Array,
) -> Iterator[Call]:
    """The calls; sums over an image's many positions are of double precision."""
    batch, height, width, channels = x.shape
    split = batch, height * width, groups, channels // groups
    source, result, square = x.reshape(split), y.reshape(split), squares.reshape(split)
    flat = each.reshape(batch, groups)
    share = 1 / (split[1] * split[3])

    def mean_of(values: Array) -> Iterator[Call]:
        yield partial(np.add.reduce, axis=1, dtype=np.float64, out=columns), (values.reshape(batch, -1, channels),)
        yield partial(np.add.reduce, axis=2, out=sums), (columns.reshape(batch, groups, -1),)
        yield np.multiply, (sums, share, sums)

    yield from mean_of(x)
    yield np.copyto, (flat, sums, "same_kind")
    yield np.subtract, (source, each, result)
    yield np.square, (result, square)
    yield from mean_of(squares)
    yield np.add, (sums, epsilon, sums)
    yield np.sqrt, (sums, sums)
    yield np.copyto, (flat, sums, "same_kind")
    yield np.divide, (result, each, result)
    yield np.multiply, (y, weight, y)
    yield np.add, (y, bias, y)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="equals PyTorch to the last few bits; LiteRT runs the decomposition",
)
