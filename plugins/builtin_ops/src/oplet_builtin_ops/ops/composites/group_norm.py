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
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from oplet import Context, Node, Registration, TensorType, decline
from oplet.kernels.arrays import Array, Thunk
from oplet_builtin_ops.layers.attributes import Attributes, ensure_single
from oplet_builtin_ops.layers.normalization import normalized_rows
from oplet_builtin_ops.layers.program import Call, repeats, run_calls, run_program

#: The positions of an image that are added up in single precision.
_POSITIONS = 128


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
        batch, channels = shape[0], shape[3]
        context.add_temporary(node, (batch, -(-(shape[1] * shape[2]) // _POSITIONS), channels))
        context.add_temporary(node, (batch, channels), TensorType.FLOAT64)
        context.add_temporary(node, (batch, groups), TensorType.FLOAT64)
        times = repeats(shape[1] * shape[2], channels)
        context.add_temporary(node, (batch, 1, times, channels))
        context.add_temporary(node, (times, channels))
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
    parts: Array,
    columns: Array,
    means: Array,
    vector: Array,
    shift: Array,
) -> Iterator[Call]:
    """Yield numpy calls that normalize groups of channels; sums over few pixels are float32, over all of them float64."""
    batch, height, width, channels = x.shape
    count = height * width
    source, result = x.reshape(batch, count, channels), y.reshape(batch, count, channels)
    whole, share = count // _POSITIONS, groups / (count * channels)

    def mean(values: Array, add_up: Callable[[Array, Array], Call]) -> Iterator[Call]:
        if whole:
            blocks = values[:, : whole * _POSITIONS].reshape(batch, whole, _POSITIONS, channels)
            yield add_up(blocks, parts[:, :whole])
        if count % _POSITIONS:
            yield add_up(values[:, None, whole * _POSITIONS :], parts[:, whole:])
        yield partial(np.add.reduce, axis=1, dtype=np.float64, out=columns), (parts,)
        yield partial(np.add.reduce, axis=2, out=means), (columns.reshape(batch, groups, -1),)
        yield np.multiply, (means, share, means)

    def values_of(blocks: Array, target: Array) -> Call:
        ones = np.ones((1, blocks.shape[2]), np.float32)
        return np.matmul, (ones, blocks, target[:, :, None])

    def squares_of(blocks: Array, target: Array) -> Call:
        return partial(np.einsum, "nkpc,nkpc->nkc", out=target), (blocks, blocks)

    # One value per channel, repeated, so that numpy's inner loops are long.
    each = vector.reshape(batch, -1, groups, channels // groups)
    joined = vector.reshape(batch, 1, -1)
    rows, results = (array.reshape(batch, -1, joined.shape[2]) for array in (source, result))
    yield from mean(source, values_of)
    yield np.copyto, (each, means[:, None, :, None], "same_kind")
    yield np.subtract, (rows, joined, results)
    yield from mean(result, squares_of)
    yield np.add, (means, epsilon, means)
    yield np.sqrt, (means, means)
    yield np.reciprocal, (means, means)
    yield np.copyto, (each, means[:, None, :, None], "same_kind")
    yield np.multiply, (vector, weight, vector)
    yield np.multiply, (results, joined, results)
    yield np.copyto, (shift, bias)
    yield np.add, (results, shift.reshape(-1), results)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="equals PyTorch to the last few bits; LiteRT runs the decomposition",
)
