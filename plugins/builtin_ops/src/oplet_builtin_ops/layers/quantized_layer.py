"""Shared parts of quantized layers with weights: per-channel scales, bias checks, rounding modes.

Numerics: PopulateConvolutionQuantizationParams and GetQuantizedConvolutionMultipler in tflite/kernels/kernel_util.cc
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.activations import activation_range
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import ensure_scale
from oplet.kernels.requantization import Rounding
from oplet.records import Record
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.layers.weights import ensure_bias, row_sums, sums_and_widths, weight_data

if TYPE_CHECKING:
    from oplet_builtin_ops.arithmetic.requantize import Requantizer
    from oplet_builtin_ops.layers.convolution import Products
    from oplet_builtin_ops.layers.depthwise import Taps
    from oplet_builtin_ops.layers.program import Call, Calls
    from oplet_builtin_ops.layers.windows import Strip

__all__ = [
    "QuantizedLayer",
    "as_rows",
    "channel_rows",
    "channel_scales",
    "convolution_layer",
    "ensure_symmetric",
    "exact_type",
    "weight_scales",
    "widest_sum",
]


#: The most products per output for which a float64 product of scaled weights is faster than passes that scale the outputs.
_SHALLOW = 32
#: Scales of outputs above which no quotient of products of two scales leaves float64's range.
_TINY = 1e-40
_LARGEST = {TensorType.INT8: 128, TensorType.UINT8: 255, TensorType.INT16: 32768, TensorType.INT4: 8, TensorType.INT2: 2}


def weight_scales(weights: Tensor, channels: int, axis: int) -> Array:
    """Return the weights' scales as float32: one for all output channels or one per channel.

    Raises:
        EnsureError: the weights have no scales, their number is wrong, or a scale is negative, infinite or not a number.
    """
    quantization = weights.quantization
    if quantization is None or not len(quantization.scales):
        ensure(False, f"{weights} needs scales and has none.")
    scales: Array = quantization.scales  # type: ignore[union-attr]
    count, blocks, given = len(scales), quantization.block_size, quantization.quantized_dimension  # type: ignore[union-attr]
    if blocks:
        ensure(False, f"{weights} is quantized by blocks of {blocks}, which goes with float activations only.")
    if count not in (1, channels):
        ensure(False, f"{weights} has {count} scales; it must have 1, or {channels}, one for each output channel.")
    if count > 1 and given != axis:
        ensure(False, f"the scales of {weights} run along dimension {given} and must run along {axis}.")
    if not (np.minimum.reduce(scales) >= 0 and np.maximum.reduce(scales) < np.inf):  # both are false for NaN
        bad = ~(np.isfinite(scales) & (scales >= 0))
        ensure(False, f"{weights} has scale {scales[bad][:1]}; scales must be finite and not negative.")
    return np.asarray(scales, np.float32)


def channel_scales(source: Tensor, weights: Tensor, output: Tensor, channels: int, axis: int, *, narrow: bool) -> Array:
    """Return each output channel's rescaling factor, input scale * weight scale / output scale, in float64.

    Args:
        source: the activations.
        weights: the weights.
        output: the output.
        channels: output channels.
        axis: the axis of the weights that has the output channels.
        narrow: whether input scale * weight scale is rounded to float32, as in LiteRT's kernels of layers with a single factor.
    """
    scales = weight_scales(weights, channels, axis)
    if len(scales) > 1:
        ensure_type(source, TensorType.INT8, TensorType.INT16)
    given, wanted = ensure_scale(source), ensure_scale(output)
    if wanted > _TINY and not narrow:
        factors = scales.astype(np.float64)
        factors *= given
        factors /= wanted
    else:
        kind = np.float32 if narrow else np.float64
        with np.errstate(all="ignore"):  # with scales of 0, NaN counts as 0
            factors = (scales.astype(kind) * kind(given)).astype(np.float64) / wanted
    return factors if len(factors) == channels else factors.repeat(channels)


def ensure_symmetric(*tensors: Tensor) -> None:
    """Check that tensors have zero point 0.

    Raises:
        EnsureError: a tensor has another zero point.
    """
    for tensor in tensors:
        if tensor.quantization is not None and tensor.quantization.zero_points.any():
            ensure(False, f"{tensor} has a zero point; it must be quantized symmetrically here.")


def as_rows(weights: Array, axis: int) -> Array:
    """Reshape weights to one row per position along `axis`; a view where possible."""
    if axis == weights.ndim - 1 > 0:
        rows: Array = weights.reshape(prod(weights.shape[:-1]), weights.shape[-1]).T
        return rows
    first = weights if axis == 0 else np.moveaxis(weights, axis, 0)
    return first.reshape(len(first), prod(first.shape[1:]))


def channel_rows(node: Node, weights: Tensor, axis: int, zero_point: int) -> Array:
    """Return the integer weights minus their zero point, one row per output channel; a view where possible."""
    rows = as_rows(weight_data(node, weights), axis)
    return rows if zero_point == 0 else rows.astype(np.int32) - zero_point


def widest_sum(weights: Tensor, depth: int, rows: Array | None) -> float:
    """Return an upper bound of sum(|weight|) over any one output channel.

    Args:
        weights: the weights.
        depth: the number of weights of a channel.
        rows: the result of `channel_rows` if the weights are constant; None to derive the bound from the weights' type.
    """
    return float(depth * _LARGEST[weights.type] if rows is None else _widths(rows).max(initial=0))


def _widths(rows: Array) -> Array:
    """Return the sum of magnitudes of each row."""
    if rows.dtype == np.int8:
        return sums_and_widths(rows)[1]
    return np.asarray(np.absolute(rows, dtype=np.int32).sum(axis=1, dtype=np.int64))


def exact_type(bound: float) -> TensorType:
    """Return the smallest float type in which sums bounded by `bound` are exact in any order: float32 up to 2**24.

    Args:
        bound: an upper bound of the sum of the products' magnitudes.
    """
    return TensorType.FLOAT32 if bound <= 2.0**24 else TensorType.FLOAT64


class QuantizedLayer(Record, frozen=False):
    """Checked plan of a layer with integer weights and activations, with the parameters of its kernel.

    Attributes:
        node: the node.
        source: the activations.
        weights: of type int8, uint8, int4, int2 or int16.
        bias: int32 or int64, one value per output channel; None for no bias.
        output: the output, of a quantized type.
        axis: the axis of the weights that has the output channels.
        scales: the factor of each output channel from accumulators to outputs, float64.
        rounding: how scaled accumulators are rounded.
        activation: the fused activation.
        zero_point: the weights' zero point; 0 if the kernel ignores it, as LiteRT does for int8 weights of convolutions.
        centred: whether the zero point is subtracted from the activations before the product.
        as_int8: whether the weights' bytes are read as int8 whatever their type, as in LiteRT's convolutions.
        scratch: the requantizer's scratch memory.
        folds: whether the weights are multiplied by the factors before the product, instead of the result afterwards.
    """

    node: Node
    source: Tensor
    weights: Tensor
    bias: Tensor | None
    output: Tensor
    axis: int
    scales: Array
    rounding: Rounding
    activation: ActivationFunctionType
    zero_point: int = 0
    centred: bool = False
    as_int8: bool = False

    def __post_init__(self) -> None:
        self.scratch: Tensor
        self.folds = False
        self._requantizer: Requantizer | None = None
        self._sums: Array | None = None

    @cached_property
    def bounds(self) -> Array:
        """An upper bound of the sum of the products' magnitudes for each output channel, float64."""

        def widths() -> Array:
            if not self.weights.is_constant:
                return np.full(self.weights.shape[self.axis], self.widest, np.float64)
            if (rows := self.rows()).dtype != np.int8:
                return _widths(rows).astype(np.float64)
            self._sums, found = sums_and_widths(rows)
            return found.astype(np.float64)

        key = "widths", self.axis, self.zero_point, self.as_int8
        return self.node.cached(key, [self.weights], widths) * self.largest

    @property
    def largest(self) -> int:
        """The largest magnitude of an activation."""
        return _LARGEST[self.source.type] + (abs(self.source.zero_point) if self.centred else 0)

    @property
    def widest(self) -> int:
        """What the magnitudes of a channel's weights add up to at most, as types and shapes say without the weights."""
        depth = self.weights.size // max(1, self.weights.shape[self.axis])
        return depth * (_LARGEST[self.weights.type] + abs(self.zero_point))

    @property
    def bound(self) -> float:
        """An upper bound of the sum of the products' magnitudes over all channels."""
        return float(self.bounds.max(initial=0))

    @property
    def compute(self) -> TensorType:
        """The float type in which the integer product is computed exactly."""
        return TensorType.FLOAT64 if self.folds else exact_type(self.bound)

    def fold(self, depth: int) -> None:
        """Set `folds`: premultiply the weights by the output factors if that saves more time than float64 products cost.

        Args:
            depth: the number of products per output.
        """
        self.folds = depth <= _SHALLOW and self.fixed and self.requantizer().takes_scaled(self.output.dtype)

    @property
    def fixed(self) -> bool:
        """Whether weights and bias are constant, so that everything derived from them is computed once."""
        return self.weights.is_constant and (self.bias is None or self.bias.is_constant)

    def rows(self) -> Array:
        """Return the weights minus their zero point, one row per output channel."""
        if self.as_int8:
            data = self.weights.data.reshape(-1).view(np.int8)[: self.weights.size].reshape(self.weights.shape)
            return as_rows(data, self.axis)
        return channel_rows(self.node, self.weights, self.axis, self.zero_point)

    def row_sums(self) -> Array:
        """Return the sum of each output channel's weights, int64; read-only, as it is cached."""
        if not self.weights.is_constant:
            return row_sums(self.rows())
        if self._sums is None:
            self._sums = row_sums(self.rows())
        return self._sums

    def add_scratch(self, context: Context, size: int, lanes: int = 1) -> None:
        """Request the requantizer's scratch memory: blocks of at most `size` values for each of `lanes` threads."""
        narrow = self.folds or self.compute == TensorType.FLOAT64
        self.scratch = context.add_temporary(self.node, (lanes, size), TensorType.FLOAT32 if narrow else TensorType.FLOAT64)

    def requantizer(self) -> Requantizer:
        """Return the layer's requantizer, which also corrects for the input's zero point unless the activations come without it."""
        if self._requantizer is not None:
            return self._requantizer
        left = 0 if self.centred else self.source.zero_point
        if self.fixed:  # with its repeated factors, which are large, it is the same for all interpreters of the model
            key = "requantizer", left, self.bound
            sources = [self.weights, self.bias]
            self._requantizer = self.node.cached(key, sources, self._new_requantizer, shared=True)
            self.scales = self._requantizer.scales
            return self._requantizer
        return self._new_requantizer()

    def _new_requantizer(self) -> Requantizer:
        from oplet_builtin_ops.arithmetic.requantize import Requantizer  # imported late: most compiled layers need none

        offsets = self.offsets()
        bounds, zero_point = self.bounds + np.absolute(offsets), self.output.zero_point
        return Requantizer(self.scales, offsets, bounds, zero_point, *self.clamp(), self.rounding)

    def offsets(self) -> Array:
        """Return what is added to each output channel's sum, int64: the bias, and the correction for the input's zero point."""
        left = 0 if self.centred else self.source.zero_point
        offsets = self.row_sums() * -left if left else np.zeros(self.weights.shape[self.axis], np.int64)
        if self.bias is not None:
            offsets += self.bias.data.reshape(-1)
        return offsets

    def clamp(self) -> tuple[int, int]:
        """Return the smallest and the largest output, after the activation."""
        return activation_range(self.activation, self.output.type, self.output.scale, self.output.zero_point)

    def finish(self, requantizer: Requantizer, block: Array, target: Array, lane: int = 0) -> list[Call]:
        """Return numpy calls that requantize one block of accumulators into `target`."""
        return requantizer.calls(block, target, self.scratch.data[lane], self.folds)

    def calls(self, plan: Products | Taps, weights: Array, requantizer: Requantizer) -> Iterator[Call]:
        """Return the numpy calls of a convolution, from the activations to the output; the weights are in the layout of `plan`."""
        output = self.output.data.reshape(-1, self.weights.shape[self.axis])

        def finish(strip: Strip, block: Array) -> list[Call]:
            return self.finish(requantizer, block, output[strip.start : strip.stop], strip.lane)

        return plan.calls(self.source.data, self.source.zero_point, weights, output, finish)

    def thunk(self, calls: Calls) -> Thunk:
        """Return a function that executes the numpy calls of `calls`, generated in each run if weights or bias are not constant."""
        from oplet_builtin_ops.layers.program import run_anew, run_program

        return run_program(calls) if self.fixed else partial(run_anew, calls)


def convolution_layer(
    node: Node,
    source: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    activation: ActivationFunctionType,
    *types: TensorType,
    axis: int = 0,
    rounding: Rounding | None = None,
    centred: bool = False,
) -> QuantizedLayer:
    """Check the types and the quantization of a convolution with integer activations, and return its parameters.

    Args:
        types: the types of weights for int8 and int16 activations; for uint8 they must be uint8.
        axis: the axis of the weights that has the output channels.
        rounding: how scaled accumulators are rounded; None for LiteRT's rounding of most convolutions, which starts from 64 bits for
            int16 activations without an int32 bias, else from 32.
        centred: whether the zero point is subtracted from the activations before the product.

    Raises:
        EnsureError: a type or a quantization does not fit.
    """
    output, channels = node.outputs[0], weights.shape[axis]
    unsigned, wide = source.type == TensorType.UINT8, source.type == TensorType.INT16
    ensure_type(weights, *([TensorType.UINT8] if unsigned else types))
    if wide:
        ensure_symmetric(source, output)
    # LiteRT's DEPTHWISE_CONV_2D takes INT64 alone for int16; other tools, and its own CONV_2D, write INT32 too.
    ensure_bias(bias, channels, TensorType.INT32, *([TensorType.INT64] if wide else []))
    if bias is not None:
        ensure(bias.zero_point == 0, lambda: f"{bias} has zero point {bias.zero_point}; a bias must have none.")
    scales = channel_scales(source, weights, output, channels, axis, narrow=unsigned)
    if rounding is None:
        rounding = Rounding.WIDE if wide and (bias is None or bias.type != TensorType.INT32) else Rounding.DOUBLE
    zero_point, as_int8 = weights.zero_point if unsigned else 0, weights.type == TensorType.INT16
    return QuantizedLayer(
        node, source, weights, bias, output, axis, scales, rounding, activation, zero_point, centred=centred, as_int8=as_int8
    )
