"""Products of float activations and integer weights for a few rows: the weights are read once, as bytes."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, TensorType, charge, decline
from oplet.kernels.activations import float_activation_range
from oplet_builtin_ops.kit.layers import HybridLayer, block_scales
from oplet_builtin_ops.kit.programs import run_calls
from oplet_numba_ops.compiling.kernels import kernel
from oplet_numba_ops.overriding import Bind, Thunk
from oplet_numba_ops.threads.splitting import cut, each
from oplet_numba_ops.threads.team import Step, ready, thunk

__all__ = ["plan_hybrid_rows"]

#: The most rows; for more, a matrix product is faster than reading bytes.
_FEW = 4
#: The least weights of a part.
_WORTH = 100_000
#: The least rows of weights of a block; in smaller ones the overhead is larger than the products.
_SMALLEST = 16


@kernel(
    "void(f4[:,::1], i1[:,::1], f4[:,::1], f4[:,::1], f4[::1], f4[:,::1], i8, i8, f4, f4)",
    fastmath={"reassoc", "contract", "nsz"},
)
def _rows_kernel(values, weights, scales, factors, bias, output, first, last, low, high):  # type: ignore[no-untyped-def]
    depth = weights.shape[1]
    blocks = scales.shape[1]
    size = depth // blocks
    for unit in range(first, last):
        for row in range(values.shape[0]):
            total = np.float32(0)
            for block in range(blocks):
                left, right = values[row, block * size : (block + 1) * size], weights[unit, block * size : (block + 1) * size]
                part = np.float32(0)
                for k in range(size):
                    part += left[k] * np.float32(right[k])
                total += part * scales[unit, block]
            result = total * factors[row, unit] + bias[unit]
            output[row, unit] = min(max(result, low), high)


def plan_hybrid_rows(context: Context, node: Node, layer: HybridLayer) -> Bind:
    """Lay out a layer with constant weights; layers of many rows, or of sums that are not exact in float32, are declined."""
    weights, output = layer.weights, node.outputs[0]
    units, depth = weights.shape
    if layer.batches > _FEW or not layer.batches or layer.compute != TensorType.FLOAT32 or weights.data.dtype.itemsize != 1:
        decline("it has many rows, none, or weights of a kind that it does not read as bytes.")
    if layer.block_size and (depth % layer.block_size or layer.block_size < _SMALLEST):
        decline("its blocks of weights are short, or do not fill a row.")
    ready(_rows_kernel)
    layer.add_scratch(context)
    charge(4 * units * (2 + layer.batches) + (4 * weights.size // layer.block_size if layer.block_size else 0))
    scales = np.ones((units, 1), np.float32)
    if layer.block_size:
        scales = block_scales(weights)
    bias = np.zeros(units, np.float32) if layer.bias is None else layer.bias.data.reshape(-1).astype(np.float32)
    bounds = float_activation_range(layer.activation)
    ranges = cut(units, weights.size * layer.batches // _WORTH, context.num_threads)

    def bind() -> Thunk:
        factors = np.empty((layer.batches, units), np.float32)
        values = layer.quantized.data.reshape(layer.batches, depth)
        rows = np.ascontiguousarray(weights.data).view(np.int8).reshape(units, depth)
        target = output.data.reshape(layer.batches, units)
        arguments = each(ranges, lambda some, _: (values, rows, scales, factors, bias, target, *some, *bounds))
        products = thunk([Step(_rows_kernel, arguments)], context.num_threads)
        return run_calls([*layer.quantize(factors), (products, ())])

    return bind
