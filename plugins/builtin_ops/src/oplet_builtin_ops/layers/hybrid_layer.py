"""Hybrid layers: float activations are quantized at run time, batch by batch, and multiplied with integer weights.

Numerics: EvalHybrid and EvalHybridPerChannel in tflite/kernels/conv.cc and depthwise_conv.cc, reference/conv.h
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Tensor, TensorType
from oplet.kernels.arrays import Array, Thunk
from oplet.records import Record
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.layers.blocks import block_scales, block_size, ensure_blocks, follow_xnnpack, from_blocks
from oplet_builtin_ops.layers.float_layer import FloatFinish
from oplet_builtin_ops.layers.program import Call, Calls, run_anew, run_program
from oplet_builtin_ops.layers.quantized_layer import as_rows, exact_type, weight_scales, widest_sum
from oplet_builtin_ops.layers.weights import sums_and_widths, weight_data

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.convolution import Products
    from oplet_builtin_ops.layers.depthwise import Taps
    from oplet_builtin_ops.layers.windows import Strip

__all__ = ["HybridLayer"]


class HybridLayer(Record, frozen=False):
    """Plan of a layer with integer weights and float activations.

    Attributes:
        node: the node.
        source: the float activations; each batch is quantized at run time.
        weights: int8, int4, int2, or uint8 whose bytes are int8 values.
        bias: float32, one value per output channel; None for no bias.
        axis: the axis of the weights that has the output channels.
        asymmetric: whether the activations have a zero point.
        activation: the fused activation.
        batches: the number of batches, each with a scale of its own.
        even: whether activations are quantized as in XNNPACK, by `quantize_to_even`, with a zero point.
        quantized: scratch for the quantized activations minus their zero point, float32.
    """

    node: Node
    source: Tensor
    weights: Tensor
    bias: Tensor | None
    axis: int
    asymmetric: bool
    activation: ActivationFunctionType
    batches: int
    even: bool = False

    def __post_init__(self) -> None:
        self.scales: Array
        self.quantized: Tensor
        self.spare: Tensor
        if self.block_size:
            ensure_blocks(self.weights)
            # Scales differ within a row, so that the weights are scaled before the product, in place of the product afterwards.
            self.scales = np.ones(1, np.float32)
            self.even = follow_xnnpack(self.weights)
            return
        self.asymmetric = self.asymmetric or self.even
        self.scales = weight_scales(self.weights, self.channels, self.axis)

    @cached_property
    def compute(self) -> TensorType:
        """The float type to multiply in."""
        if self.block_size:
            return TensorType.FLOAT32

        def largest() -> tuple[float, float]:
            if not self.weights.is_constant:
                return (most := widest_sum(self.weights, self.weights.size // max(1, self.channels), None)), most
            sums, widths = sums_and_widths(self.integers())
            return float(widths.max(initial=0)), float(np.absolute(sums).max(initial=0))

        widest, largest_sum = self.node.cached(("largest sums", self.axis), [self.weights], largest)
        # With a zero point, activations reach over 255 steps: positive weights take part of them, and negative ones the rest.
        return exact_type(255 * (widest + largest_sum) / 2 if self.asymmetric else 127 * widest)

    @property
    def block_size(self) -> int:
        """The number of weights that share a scale if they are quantized blockwise; else 0."""
        return block_size(self.weights)

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return self.weights.shape[self.axis]

    @property
    def fixed(self) -> bool:
        """Whether weights and bias are constant."""
        return self.weights.is_constant and (self.bias is None or self.bias.is_constant)

    def add_scratch(self, context: Context) -> None:
        """Request scratch memory for the quantized activations."""
        self.quantized = context.add_temporary(self.node, self.source.shape, TensorType.FLOAT32)
        self.spare = context.add_temporary(self.node, self.source.shape, TensorType.FLOAT32)

    def integers(self) -> Array:
        """Return the integer weights without scales, one row per output channel.

        Zero points are ignored, and uint8 only holds the bytes of int8 values.
        """
        return as_rows(self._integers(), self.axis)

    def _integers(self) -> Array:
        data = weight_data(self.node, self.weights)
        data = data.view(np.int8) if data.dtype == np.uint8 else data
        return data.reshape(self.weights.shape)

    def rows(self) -> Array:
        """Return the weights as they are multiplied, one row per output channel: integers, or floats where they have a scale per block."""
        if size := self.block_size:
            return as_rows(from_blocks(self._integers(), block_scales(self.weights, self.even), size), self.axis)
        return self.integers()

    def quantize(self, factors: Array) -> list[Call]:
        """Return numpy calls that quantize the activations and write the rescaling factors of the products.

        Args:
            factors: float32, (batches, channels); receives activation scale * weight scale.
        """
        shape = self.batches, self.source.size // max(1, self.batches)
        if not self.source.size:
            return []
        from oplet_builtin_ops.layers.hybrid import quantize_asymmetric, quantize_symmetric, quantize_to_even

        scales = np.empty(self.batches, np.float32)
        quantize = quantize_to_even if self.even else quantize_asymmetric if self.asymmetric else quantize_symmetric
        values, target, spare = (t.data.reshape(shape) for t in (self.source, self.quantized, self.spare))
        return [(quantize, (values, target, scales, spare)), (np.multiply, (scales[:, None], self.scales, factors))]

    def calls(self, plan: Products | Taps, weights: Array) -> Iterator[Call]:
        """Return the numpy calls of a convolution, from the activations to the output; the weights are in the layout of `plan`."""
        finish = self.finish()
        factors = np.empty((self.batches, self.channels), np.float32)
        output = self.node.outputs[0].data.reshape(-1, self.channels)

        def finish_strip(strip: Strip, block: Array) -> list[Call]:
            target = output[strip.start : strip.stop]
            copy: list[Call] = [] if plan.accumulators is None else [(np.copyto, (target, block))]
            by_pixel = self.batches == len(output)
            return copy + finish.calls(target, factors[strip.start : strip.stop] if by_pixel else factors[strip.where[0].start])

        return chain(self.quantize(factors), plan.calls(self.quantized.data, np.float32(0), weights, output, finish_strip))

    def finish(self) -> FloatFinish:
        """Return the last step of the layer, which adds the bias and applies the activation."""
        return FloatFinish(None if self.bias is None else self.bias.data, self.fixed, self.activation)

    def thunk(self, calls: Calls) -> Thunk:
        """Return a function that executes the numpy calls of `calls`, generated in each run if weights or bias are not constant."""
        return run_program(calls) if self.fixed else partial(run_anew, calls)
