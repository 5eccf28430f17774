"""Direct convolution for small layers: each output is accumulated over the filter taps, channels innermost, and finished at once.

These kernels serve the layers that the tiled products of `products` do not: float activations with integer weights, 16-bit
activations, channels in groups, and transposed convolutions. For large ones numpy's matrix products are faster. Sums of integers
are exact, so that results equal numpy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType, decline
from oplet.kernels.activations import CLAMPS, float_activation_range
from oplet.kernels.windows import Axis
from oplet.records import Row
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer
from oplet_compiled_ops.convolution.row_quantization import QUANTIZE_ROWS, quantization_of
from oplet_compiled_ops.elementwise.fixed_point import scaled, scaling_table
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.library.memory import Array, flat, padded_rows
from oplet_compiled_ops.overriding import Bind, Thunk, charge_constant
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["Geometry", "plan_direct", "plan_direct_layer"]

#: The most steps of a layer: each multiplies one value with the weights of a panel. Every tap takes as long as some more.
_MOST_STEPS, _TAP = 1 << 14, 3
#: The largest integer up to which all of them are float32 numbers.
_EXACT = 2.0**24
#: The largest float64 below 0.5: with it, truncation rounds halves away from zero.
_BELOW_HALF = float(np.nextafter(0.5, 0))
#: The channels that are summed together, in variables that the compiler keeps in a vector.
_PANEL = 8

# Indices without a sign: for others numba adds code that counts negative ones from the end, which keeps loops from being vectorized.
_U1, _U2, _U3, _U4, _U5, _U6, _U7, _U8 = (np.uint64(number) for number in range(1, 9))

_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)
_contracting: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False, fastmath={"contract"})


class Geometry(Row):
    """Sizes, strides and padding of a layer that decide which inputs an output's filter taps read."""

    batch: int  #: The number of maps.
    height: Axis  #: The windows along the height.
    width: Axis  #: The windows along the width; for a transposed convolution those over its output.
    depth: int  #: The channels of a group of the input.
    groups: int  #: The groups of channels.
    filters: int  #: The channels of the output.
    transposed: bool = False  #: Whether the layer is the transpose of the convolution that the other attributes describe.

    @property
    def steps(self) -> int:
        """The layer's cost in steps of the innermost loop: one input value times the weights of eight output channels."""
        pixels = self.batch * self.height.out * self.width.out
        taps = self.height.filter * self.width.filter * self.groups
        return pixels * taps * (self.depth + _TAP) * (1 + (self.filters // self.groups - 1) // _PANEL)

    @property
    def is_small(self) -> bool:
        """Whether the layer is so small that the direct loops are at least as fast as numpy's kernel."""
        return self.steps <= _MOST_STEPS

    @property
    def words(self) -> tuple[int, ...]:
        """The sizes, strides, dilations, padding and channels as integers, in the order of the direct kernel's arguments."""
        h, w = self.height, self.width
        read, made = ((h.out, w.out), (h.size, w.size)) if self.transposed else ((h.size, w.size), (h.out, w.out))
        axes = (h.filter, w.filter, h.stride, w.stride, h.dilation, w.dilation, h.before, w.before)
        return self.batch, *read, *made, *axes, self.depth, self.groups, self.filters // self.groups, int(self.transposed)


@_inlined
def _first(out, stride, before, dilation, transposed):  # type: ignore[no-untyped-def]
    """Return, for the output position `out` along an axis: its first filter tap, the step to its next tap, the input position of
    the first tap, and the step from there to that of the next.
    """
    if transposed:
        return (out + before) % stride, stride, (out + before) // stride, -1
    return 0, 1, out * stride - before, dilation


@_contracting
def _plus(total, value, weight):  # type: ignore[no-untyped-def]
    return total + value * weight


@_inlined
def _finish_quantized(sums, filters, image, table, scales, out, at, zero, low, high):  # type: ignore[no-untyped-def]
    for channel in range(filters):
        word = channel * 6
        total = np.int64(sums[channel]) + table[word]
        total = scaled(total, table[word + 1], table[word + 2], table[word + 3], table[word + 4], table[word + 5])
        out[at + channel] = min(max(total + zero, low), high)


@_inlined
def _finish_rounded(sums, filters, image, table, scales, out, at, zero, low, high):  # type: ignore[no-untyped-def]
    for channel in range(filters):
        total = (np.float64(sums[channel]) + table[channel]) * table[filters + channel]
        steps = np.int64(total + (-_BELOW_HALF if total < 0 else _BELOW_HALF))
        out[at + channel] = min(max(steps + zero, low), high)


@_inlined
def _finish_hybrid(sums, filters, image, table, scales, out, at, zero, low, high):  # type: ignore[no-untyped-def]
    for channel in range(filters):
        total = np.float32(sums[channel]) * np.float32(scales[image] * table[channel])
        total = total + table[filters + channel]
        total = low if total < low else total
        out[at + channel] = high if total > high else total


@_inlined
def _finish_floats(sums, filters, image, table, scales, out, at, zero, low, high):  # type: ignore[no-untyped-def]
    for channel in range(filters):
        total = sums[channel] + table[channel]
        total = low if total < low else total
        out[at + channel] = high if total > high else total


def _members() -> Iterator[tuple[str, str, str, str]]:
    yield from (("f4", "f4", "f4", "f4"), ("i2", "f4", "f4", "f4"))
    for code, sums, table in product(("i1", "u1", "i2"), ("f4", "f8"), ("i8", "f8")):
        yield code, sums, table, code


@family(_members)
def direct_kernel(source: str, sums: str, table: str, output: str) -> Kernel:
    """Build the direct kernel for the given element types, in numba's names ("i1", "f4").

    Weights are ordered by group of channels, panel (eight of a group's output channels), tap, input channel, and channel of the
    panel.

    Args:
        source: the type of the activations.
        sums: the float type in which products are summed.
        table: the type of the output stage's table: "f4" has the channels' scales, for sums of integers, and biases; "f8" has
            offsets and factors, for a product that is rounded once; "i8" has `WORDS` numbers of `fixed_point.scaling_table` for
            each channel.
        output: the type of the outputs.
    """
    kind = {"f4": np.float32, "f8": np.float64}[sums]
    finish = {"i8": _finish_quantized, "f8": _finish_rounded, "f4": _finish_floats if source == "f4" else _finish_hybrid}[table]

    # fmt: off
    def direct(  # type: ignore[no-untyped-def]
        source, weights, sums, table, scales, out, zero_point, zero, low, high,
        batch, rows, columns, out_rows, out_columns, taps_y, taps_x, stride_y, stride_x, dilation_y, dilation_x, before_y, before_x,
        depth, groups, count, transposed,
    ):
        # fmt: on
        filters, size = groups * count, taps_y * taps_x * depth * 8
        for image in range(batch):
            for y in range(out_rows):
                first_j, step_j, first_row, step_row = _first(y, stride_y, before_y, dilation_y, transposed)
                for x in range(out_columns):
                    first_i, step_i, first_column, step_column = _first(x, stride_x, before_x, dilation_x, transposed)
                    panel = 0
                    for group in range(groups):
                        for channel in range(0, count, 8):
                            a = b = c = d = e = f = g = h = kind(0)
                            row = first_row
                            for j in range(first_j, taps_y, step_j):
                                column = first_column
                                for i in range(first_i, taps_x, step_i):
                                    if 0 <= row < rows and 0 <= column < columns:
                                        at = (((image * rows + row) * columns + column) * groups + group) * depth
                                        place = np.uint64(panel + (j * taps_x + i) * depth * 8)
                                        for k in range(depth):
                                            value = kind(source[np.uint64(at + k)]) - kind(zero_point)
                                            a = _plus(a, value, weights[place])
                                            b = _plus(b, value, weights[place + _U1])
                                            c = _plus(c, value, weights[place + _U2])
                                            d = _plus(d, value, weights[place + _U3])
                                            e = _plus(e, value, weights[place + _U4])
                                            f = _plus(f, value, weights[place + _U5])
                                            g = _plus(g, value, weights[place + _U6])
                                            h = _plus(h, value, weights[place + _U7])
                                            place += _U8
                                    column += step_column
                                row += step_row
                            start = group * count + channel
                            sums[start], sums[start + 1], sums[start + 2], sums[start + 3] = a, b, c, d
                            sums[start + 4], sums[start + 5], sums[start + 6], sums[start + 7] = e, f, g, h
                            panel += size
                    pixel = (image * out_rows + y) * out_columns + x
                    finish(sums, filters, image, table, scales, out, pixel * filters, zero, low, high)

    bounds = "f4, f4" if table == "f4" else "i8, i8"
    arrays = ", ".join(f"{kind}[::1]" for kind in (source, sums, sums, table, "f4", output))
    return Kernel(direct, f"void({arrays}, i8, i8, {bounds}, {', '.join(['i8'] * 17)})")


def plan_direct_layer(
    context: Context, node: Node, geometry: Geometry, layer: QuantizedLayer | HybridLayer, why: str = ""
) -> Bind:
    """Plan a small layer with constant integer weights and bias; decline a large one (leave it to numpy's kernel). `why` is the reason in
    that case; "" if size alone is the reason.
    """
    if isinstance(layer, QuantizedLayer):
        return _plan_quantized(context, node, geometry, layer, why)
    if layer.block_size or layer.activation not in CLAMPS:
        decline("its weights have scales in blocks, or its activation is not one that it computes.")
    if layer.compute != TensorType.FLOAT32:
        decline("its sums are larger than it computes.")
    _ensure_small(geometry)
    kernel = direct_kernel("i2", "f4", "f4", "f4")
    ready(QUANTIZE_ROWS, kernel)
    quantized = context.add_temporary(node, layer.source.shape, TensorType.INT16)
    rows = _arranged(context, node, geometry, layer.rows, layer.axis, np.float32)
    filters = geometry.filters
    table = np.zeros(2 * filters, np.float32)
    table[:filters] = layer.scales
    if layer.bias is not None:
        table[filters:] = layer.bias.data.reshape(-1)
    bounds = tuple(float(bound) for bound in float_activation_range(layer.activation))
    scales, sums = np.empty(layer.batches, np.float32), np.empty(filters + _PANEL, np.float32)

    def bind() -> Thunk:
        shape = layer.batches, layer.source.size // layer.batches
        values, integers = layer.source.data.reshape(shape), quantized.data.reshape(shape)
        arrays = flat(quantized.data), rows, sums, table, scales, flat(node.outputs[0].data)
        return thunk(
            [
                Step(QUANTIZE_ROWS, [(values, integers, scales, quantization_of(layer))]),
                Step(kernel, [(*arrays, 0, 0, *bounds, *geometry.words)]),
            ]
        )

    return bind


def _plan_quantized(context: Context, node: Node, geometry: Geometry, layer: QuantizedLayer, why: str) -> Bind:
    _ensure_small(geometry, why)
    requantizer = layer.requantizer()
    scales = scaling_table(requantizer)
    if scales is None:
        decline("its sums, or their factors, are larger than it computes exactly.")
    offsets = requantizer.offsets
    if not layer.centred and layer.source.zero_point:  # the kernel subtracts it
        offsets = offsets + layer.source.zero_point * layer.row_sums()
    scales[..., 0] = offsets
    source, output = node.inputs[_source_place(node)], layer.output
    codes = [f"{np.dtype(tensor.dtype).kind}{np.dtype(tensor.dtype).itemsize}" for tensor in (source, output)]
    kind = np.dtype(np.float32 if requantizer.limits.max() <= _EXACT else np.float64)
    sums = np.empty(geometry.filters + _PANEL, kind)
    kernel = direct_kernel(codes[0], f"f{kind.itemsize}", "i8" if scales.dtype == np.int64 else "f8", codes[1])
    ready(kernel)
    rows = _arranged(context, node, geometry, layer.rows, layer.axis, kind)
    bounds = requantizer.low, max(requantizer.low, requantizer.high)
    none = np.empty(0, np.float32)

    def bind() -> Thunk:
        arrays = (
            flat(source.data),
            rows,
            sums,
            flat(scales) if scales.dtype == np.int64 else flat(scales.T.copy()),
            none,
            flat(output.data),
        )
        numbers = layer.source.zero_point, requantizer.zero_point, *bounds
        return thunk([Step(kernel, [(*arrays, *numbers, *geometry.words)])])

    return bind


def plan_direct(
    context: Context,
    node: Node,
    geometry: Geometry,
    rows: Callable[[], Array],
    bias: Tensor | None,
    activation: ActivationFunctionType,
) -> Bind:
    """Plan a small float layer with constant weights and bias; decline a large one (leave it to numpy's kernel).

    Args:
        geometry: the layer's sizes.
        rows: returns the weights, one row per output channel.
        bias: one value per output channel; None for none.
    """
    if activation not in CLAMPS:
        decline("its activation is not one that it computes.")
    _ensure_small(geometry)
    kernel = direct_kernel("f4", "f4", "f4", "f4")
    ready(kernel)
    weights = _arranged(context, node, geometry, rows, 0, np.float32)
    table, sums, none = (
        np.zeros(geometry.filters, np.float32),
        np.empty(geometry.filters + _PANEL, np.float32),
        np.empty(0, np.float32),
    )
    if bias is not None:
        table[:] = bias.data.reshape(-1)
    bounds = tuple(float(bound) for bound in float_activation_range(activation))
    source = node.inputs[_source_place(node)]

    def bind() -> Thunk:
        arrays = flat(source.data), weights, sums, table, none, flat(node.outputs[0].data)
        return thunk([Step(kernel, [(*arrays, 0, 0, *bounds, *geometry.words)])])

    return bind


def _source_place(node: Node) -> int:
    """Return which of the node's inputs has the activations: the third of TRANSPOSE_CONV (the first is the output's shape), else
    the first.
    """
    return 2 if node.op_name == "TRANSPOSE_CONV" else 0


def _ensure_small(geometry: Geometry, why: str = "") -> None:
    if not prod((geometry.batch, geometry.height.out, geometry.width.out, geometry.depth, geometry.filters)):
        decline("there is nothing to compute.")
    if not geometry.is_small:
        decline(why or "it is large: numpy's matrix products are faster.")


def _arranged(context: Context, node: Node, geometry: Geometry, rows: Callable[[], Array], axis: int, kind: Any) -> Array:
    """Return the weights in the order that `direct_kernel` reads, as numbers of type `kind`; one array for all interpreters of
    the model.

    `rows` returns the weights, one row per output channel, which lie along `axis` in the tensor (a part of the cache's key).
    """
    groups, depth, dtype = geometry.groups, geometry.depth, np.dtype(kind)
    count, taps = geometry.filters // groups, geometry.height.filter * geometry.width.filter
    padded = padded_rows(count, _PANEL)
    charge_constant(context, node, node.inputs[1], padded * groups * taps * depth * dtype.itemsize)

    def make() -> Array:
        panels = np.zeros((groups, padded, taps, depth), dtype)
        panels[:, :count] = rows().reshape(groups, count, taps, depth)
        panels = panels.reshape(groups, padded // _PANEL, _PANEL, taps, depth).transpose(0, 1, 3, 4, 2)
        return np.ascontiguousarray(panels).reshape(-1)

    key = "direct", axis, dtype.char, groups, depth
    return node.cached(key, [node.inputs[1]], make, shared=True)
