"""The STABLEHLO operators, most of which are jax's own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from oplet import Node, TensorType
from oplet.schema.enums import StablehloComparisonDirection, StablehloComparisonType
from oplet.schema.stablehlo_options import (
    StablehloBroadcastInDimOptions,
    StablehloCompareOptions,
    StablehloConcatenateOptions,
    StablehloConvolutionOptions,
    StablehloDotGeneralOptions,
    StablehloDynamicSliceOptions,
    StablehloGatherOptions,
    StablehloIotaOptions,
    StablehloPadOptions,
    StablehloReduceOptions,
    StablehloReduceWindowOptions,
    StablehloScatterOptions,
    StablehloSliceOptions,
    StablehloSortOptions,
    StablehloTransposeOptions,
)
from oplet_xla_delegate.ops.unary import converted
from oplet_xla_delegate.tracing import Trace, inside
from oplet_xla_delegate.translators import FLOATS, INTEGERS, MOVED, NUMBERS, translates

_BITS = (*INTEGERS, TensorType.BOOL)


def _list(vector: Any) -> list[int]:
    return [] if vector is None else [int(each) for each in vector]


def _elementwise(name: str, compute: Any, count: int, types: Any) -> None:
    @translates(f"STABLEHLO_{name}", inputs=(count, count), types=types, moves=True)
    def translate(trace: Trace, node: Node, *values: Any) -> Any:
        return compute(*values)


for _name, _compute in {
    "CBRT": jnp.cbrt,
    "COSINE": jnp.cos,
    "EXPONENTIAL": jnp.exp,
    "FLOOR": jnp.floor,
    "LOG": jnp.log,
    "LOGISTIC": jax.nn.sigmoid,
    "RSQRT": lax.rsqrt,
    "TANH": jnp.tanh,
}.items():
    _elementwise(_name, _compute, 1, FLOATS)
for _name, _compute in {"ABS": jnp.abs, "NEGATE": jnp.negative}.items():
    _elementwise(_name, _compute, 1, NUMBERS)
for _name, _compute in {
    "ADD": jnp.add,
    "DIVIDE": lax.div,
    "MAXIMUM": jnp.maximum,
    "MINIMUM": jnp.minimum,
    "MULTIPLY": jnp.multiply,
    "POWER": jnp.power,
    "REMAINDER": lax.rem,
    "SUBTRACT": jnp.subtract,
}.items():
    _elementwise(_name, _compute, 2, NUMBERS)
for _name, _compute in {"AND": jnp.bitwise_and, "OR": jnp.bitwise_or}.items():
    _elementwise(_name, _compute, 2, _BITS)
_elementwise("SHIFT_LEFT", lax.shift_left, 2, INTEGERS)
_elementwise("CLAMP", lambda low, x, high: jnp.clip(x, low, high), 3, NUMBERS)
_elementwise("SELECT", lambda condition, one, other: jnp.where(condition, one, other), 3, MOVED)


def _refuses_convert(node: Node) -> str:
    data, out = node.inputs[0], node.outputs[0]
    lossy = data.type in FLOATS and out.type not in (*FLOATS, TensorType.INT32, TensorType.BOOL)
    return f"XLA cuts floats that do not fit {out.type.name} otherwise" if lossy else ""


@translates("STABLEHLO_CONVERT", types=MOVED, moves=True, refuses=_refuses_convert)
def _convert(trace: Trace, node: Node, x: Any) -> Any:
    return converted(x, node.outputs[0].dtype)


_DIRECTIONS = {
    StablehloComparisonDirection(number): compute
    for number, compute in enumerate([lax.eq, lax.ne, lax.ge, lax.gt, lax.le, lax.lt])
}


def _refuses_compare(node: Node) -> str:
    kind = node.options(StablehloCompareOptions).compare_type
    return "it compares by total order" if kind is StablehloComparisonType.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER else ""


@translates("STABLEHLO_COMPARE", inputs=(2, 2), types=MOVED, moves=True, refuses=_refuses_compare)
def _compare(trace: Trace, node: Node, x: Any, y: Any) -> Any:
    return _DIRECTIONS[node.options(StablehloCompareOptions).comparison_direction](x, y)


# Moving --------------------------------------------------------------------------------------------------------------------


@translates("STABLEHLO_RESHAPE", types=MOVED, moves=True)
def _reshape(trace: Trace, node: Node, x: Any) -> Any:
    return x.reshape(node.outputs[0].shape)


@translates("STABLEHLO_TRANSPOSE", types=MOVED, moves=True)
def _transpose(trace: Trace, node: Node, x: Any) -> Any:
    return x.transpose(_list(node.options(StablehloTransposeOptions).permutation))


@translates("STABLEHLO_BROADCAST_IN_DIM", inputs=(1, 2), types=MOVED, moves=True, constants=(1,))
def _broadcast_in_dim(trace: Trace, node: Node, x: Any, *rest: Any) -> Any:
    if len(node.inputs) > 1:
        return lax.broadcast_in_dim(x, node.outputs[0].shape, _list(node.inputs[1].data))
    return lax.broadcast_in_dim(
        x, node.outputs[0].shape, _list(node.options(StablehloBroadcastInDimOptions).broadcast_dimensions)
    )


@translates("STABLEHLO_CONCATENATE", inputs=(1, 4096), types=MOVED, moves=True)
def _concatenate(trace: Trace, node: Node, *values: Any) -> Any:
    return jnp.concatenate(values, node.options(StablehloConcatenateOptions).dimension)


@translates("STABLEHLO_SLICE", types=MOVED, moves=True)
def _slice(trace: Trace, node: Node, x: Any) -> Any:
    options = node.options(StablehloSliceOptions)
    return lax.slice(x, _list(options.start_indices), _list(options.limit_indices), _list(options.strides))


@translates("STABLEHLO_PAD", inputs=(2, 2), types=MOVED, moves=True)
def _pad(trace: Trace, node: Node, x: Any, filler: Any) -> Any:
    options = node.options(StablehloPadOptions)
    widths = zip(*map(_list, (options.edge_padding_low, options.edge_padding_high, options.interior_padding)))
    return lax.pad(x, filler.reshape(()), list(widths))


@translates("STABLEHLO_IOTA", inputs=(0, 0), types=NUMBERS)
def _iota(trace: Trace, node: Node) -> Any:
    out = node.outputs[0]
    return lax.broadcasted_iota(out.dtype, out.shape, node.options(StablehloIotaOptions).iota_dimension)


@translates("STABLEHLO_DYNAMIC_SLICE", inputs=(1, 64), types=MOVED, moves=True)
def _dynamic_slice(trace: Trace, node: Node, x: Any, *begin: Any) -> Any:
    sizes = _list(node.options(StablehloDynamicSliceOptions).slice_sizes)
    return lax.dynamic_slice(x, inside(begin, x.shape, sizes), sizes)


@translates("STABLEHLO_DYNAMIC_UPDATE_SLICE", inputs=(2, 64), types=MOVED, moves=True)
def _dynamic_update_slice(trace: Trace, node: Node, x: Any, update: Any, *begin: Any) -> Any:
    return lax.dynamic_update_slice(x, update, inside(begin, x.shape, update.shape))


@translates("STABLEHLO_GATHER", inputs=(2, 2), types=MOVED, moves=True)
def _gather(trace: Trace, node: Node, x: Any, places: Any) -> Any:
    options = node.options(StablehloGatherOptions)
    numbers = lax.GatherDimensionNumbers(
        tuple(_list(options.offset_dims)), tuple(_list(options.collapsed_slice_dims)), tuple(_list(options.start_index_map))
    )
    return lax.gather(x, _index_vectors(places, options.index_vector_dim), numbers, _list(options.slice_sizes), mode="clip")


def _index_vectors(places: Any, axis: int) -> Any:
    """Return positions with their vectors in the last dimension, where jax wants them."""
    return places[..., None] if axis == places.ndim else jnp.moveaxis(places, axis, -1)


# Products ------------------------------------------------------------------------------------------------------------------


@translates("STABLEHLO_DOT_GENERAL", inputs=(2, 2), types=NUMBERS)
def _dot_general(trace: Trace, node: Node, x: Any, y: Any) -> Any:
    options = node.options(StablehloDotGeneralOptions)
    contracting = _list(options.lhs_contracting_dimensions), _list(options.rhs_contracting_dimensions)
    batch = _list(options.lhs_batching_dimensions), _list(options.rhs_batching_dimensions)
    made = trace.product(lax.dot_general, x, y, dimension_numbers=(contracting, batch))
    return made.astype(node.outputs[0].dtype)


@translates("STABLEHLO_CONVOLUTION", inputs=(2, 2), types=NUMBERS)
def _convolution(trace: Trace, node: Node, x: Any, w: Any) -> Any:
    options = node.options(StablehloConvolutionOptions)
    spatial = x.ndim - 2
    numbers = lax.ConvDimensionNumbers(
        (options.input_batch_dimension, options.input_feature_dimension, *_list(options.input_spatial_dimensions)),
        (
            options.kernel_output_feature_dimension,
            options.kernel_input_feature_dimension,
            *_list(options.kernel_spatial_dimensions),
        ),
        (options.output_batch_dimension, options.output_feature_dimension, *_list(options.output_spatial_dimensions)),
    )
    if options.window_reversal is not None and any(options.window_reversal):
        axes = [axis for axis, turned in zip(_list(options.kernel_spatial_dimensions), options.window_reversal) if turned]
        w = jnp.flip(w, axes)
    edges = _list(options.padding) or [0] * (2 * spatial)
    return trace.product(
        lax.conv_general_dilated,
        x,
        w,
        window_strides=_list(options.window_strides) or [1] * spatial,
        padding=list(zip(edges[::2], edges[1::2])),
        lhs_dilation=_list(options.lhs_dilation) or [1] * spatial,
        rhs_dilation=_list(options.rhs_dilation) or [1] * spatial,
        dimension_numbers=numbers,
        feature_group_count=max(options.feature_group_count, 1),
        batch_group_count=max(options.batch_group_count, 1),
    )


# With bodies ---------------------------------------------------------------------------------------------------------------


def _region(trace: Trace, index: int, count: int) -> Any:
    """Return a function of two values, or two tuples of so many, that runs a subgraph."""

    def combine(x: Any, y: Any) -> Any:
        made = trace.region(index, [*x, *y] if count > 1 else [x, y])
        return tuple(made) if count > 1 else made[0]

    return combine


def _reduce_bodies(node: Node) -> list[int]:
    return [node.options(StablehloReduceOptions).body_subgraph_index]


@translates("STABLEHLO_REDUCE", inputs=(2, 64), outputs=None, types=MOVED, moves=True, bodies=_reduce_bodies)
def reduce(trace: Trace, node: Node, *values: Any) -> Any:
    """Return the outputs of STABLEHLO_REDUCE as traced jax values."""
    count = len(values) // 2
    combine = _region(trace, _reduce_bodies(node)[0], count)
    starts = [value.reshape(()) for value in values[count:]]
    axes = _list(node.options(StablehloReduceOptions).dimensions)
    if count == 1:
        return lax.reduce(values[0], starts[0], combine, axes)
    return lax.reduce(tuple(values[:count]), tuple(starts), combine, axes)


def _window_bodies(node: Node) -> list[int]:
    return [node.options(StablehloReduceWindowOptions).body_subgraph_index]


@translates("STABLEHLO_REDUCE_WINDOW", inputs=(2, 2), types=MOVED, moves=True, bodies=_window_bodies)
def _reduce_window(trace: Trace, node: Node, x: Any, start: Any) -> Any:
    options, ones = node.options(StablehloReduceWindowOptions), [1] * x.ndim
    edges = _list(options.padding) or [0] * (2 * x.ndim)
    return lax.reduce_window(
        x,
        start.reshape(()),
        _region(trace, options.body_subgraph_index, 1),
        _list(options.window_dimensions),
        _list(options.window_strides) or ones,
        list(zip(edges[::2], edges[1::2])),
        _list(options.base_dilations) or ones,
        _list(options.window_dilations) or ones,
    )


def _sort_bodies(node: Node) -> list[int]:
    return [node.options(StablehloSortOptions).comparator_subgraph_index]


@translates("STABLEHLO_SORT", inputs=(1, 64), outputs=None, types=NUMBERS, bodies=_sort_bodies)
def sort(trace: Trace, node: Node, *values: Any) -> Any:
    """Return the outputs of STABLEHLO_SORT as traced jax values: sorted by the first operand, up or down, the only orders of jax."""
    options, body = node.options(StablehloSortOptions), trace.body(_sort_bodies(node)[0])
    axis = options.dimension % values[0].ndim
    if len(body.nodes) != 1 or body.nodes[0].op_name != "STABLEHLO_COMPARE" or body.nodes[0].inputs != body.inputs[:2]:
        raise ValueError("its comparator does more than compare two values of the first operand")
    direction = body.nodes[0].options(StablehloCompareOptions).comparison_direction
    if _DIRECTIONS[direction] is lax.lt:
        return lax.sort(values, axis, num_keys=1)
    if _DIRECTIONS[direction] is not lax.gt:
        raise ValueError("its comparator compares neither by less nor by greater")
    turned = lax.sort([jnp.flip(value, axis) for value in values], axis, num_keys=1)  # equal ones keep their order
    return [jnp.flip(value, axis) for value in turned]


_SCATTERS: dict[str, Any] = {
    "": lax.scatter,
    "STABLEHLO_ADD": lax.scatter_add,
    "STABLEHLO_MULTIPLY": lax.scatter_mul,
    "STABLEHLO_MAXIMUM": lax.scatter_max,
    "STABLEHLO_MINIMUM": lax.scatter_min,
    "ADD": lax.scatter_add,
    "MUL": lax.scatter_mul,
    "MAXIMUM": lax.scatter_max,
    "MINIMUM": lax.scatter_min,
}


def _scatter_bodies(node: Node) -> list[int]:
    return [node.options(StablehloScatterOptions).update_computation_subgraph_index]


@translates("STABLEHLO_SCATTER", inputs=(3, 3), types=NUMBERS, bodies=_scatter_bodies)
def scatter(trace: Trace, node: Node, x: Any, places: Any, updates: Any) -> Any:
    """Return the outputs of STABLEHLO_SCATTER as traced jax values; updates replace, or are combined by a function that jax has."""
    options, body = node.options(StablehloScatterOptions), trace.body(_scatter_bodies(node)[0])
    plain = not body.nodes and body.outputs == body.inputs[1:]
    name = "" if plain else body.nodes[0].op_name if len(body.nodes) == 1 else "several nodes"
    if name not in _SCATTERS or (not plain and set(body.nodes[0].inputs) != set(body.inputs)):
        raise ValueError("its updates are combined otherwise than by a sum, product or bound")
    numbers = lax.ScatterDimensionNumbers(
        tuple(_list(options.update_window_dims)),
        tuple(_list(options.inserted_window_dims)),
        tuple(_list(options.scatter_dims_to_operand_dims)),
    )
    return _SCATTERS[name](x, _index_vectors(places, options.index_vector_dim), updates, numbers, mode="drop")
