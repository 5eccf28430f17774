"""Steps after a float matrix product: the hybrid layer's scales, the bias, the fused activation."""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from oplet import Node
from oplet.kernels.activations import float_activation_range
from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import clip
from oplet.records import Record
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.layers.program import Call, repeated, repeats

__all__ = ["FloatFinish"]


class FloatFinish(Record):
    """The last step of a float layer: adds the bias and applies the activation, in place.

    Attributes:
        bias: one value per channel, None for no bias.
        fixed: whether the bias is constant, so that tiled copies of it may be kept.
        activation: the fused activation, which is a range to clamp to.
        node: the node whose third input is the bias, for which interpreters of one model share tiled copies; None to share none.
    """

    bias: Array | None
    fixed: bool
    activation: ActivationFunctionType
    node: Node | None = None

    @cached_property
    def _joined(self) -> dict[int, Array]:
        return {}

    def calls(self, block: Array, factors: Array | None = None) -> list[Call]:
        """Return numpy calls that add bias and apply the activation to one block of products.

        Args:
            block: (rows, channels), contiguous.
            factors: what the products are multiplied with before the bias is added, one per channel; None for nothing.
        """
        program: list[Call] = []
        if not block.size:
            return program
        if factors is not None:
            program.append((np.multiply, (block, factors, block)))
        if self.bias is not None:
            count, channels = block.shape
            joined = repeats(count, channels) if self.fixed else 1
            added = self._joined.get(joined)
            if added is None:
                added = self._joined[joined] = self._repeated(self.bias, joined)
            rows = block.reshape(-1, channels * joined)
            program.append((np.add, (rows, added, rows)))
        bounds = _bounds(self.activation)
        if bounds is not None:
            program.append((clip, (block, *bounds, block)))
        return program

    def _repeated(self, bias: Array, times: int) -> Array:
        """Return the bias tiled `times` times, cached for all interpreters of the model."""
        if times == 1 or self.node is None:
            return repeated(bias.reshape(-1), times)
        return self.node.cached(
            ("repeated bias", times), [self.node.inputs[2]], lambda: repeated(bias.reshape(-1), times), shared=True
        )


@cache
def _bounds(activation: ActivationFunctionType) -> tuple[np.float32, np.float32] | None:
    """Return the clamp range of a fused activation; None if it has none."""
    low, high = float_activation_range(activation)
    return None if np.isinf(low) and np.isinf(high) else (low, high)
