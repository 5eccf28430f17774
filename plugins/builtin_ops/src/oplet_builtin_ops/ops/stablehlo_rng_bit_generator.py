"""STABLEHLO_RNG_BIT_GENERATOR: random bits from a state, and the next state.

Numerics: tflite/kernels/rng_bit_generator.cc. The state is two words of key, two of the counter and, for Philox and if there is a
third uint64, the upper half of the counter (the key again, if not).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet.schema.enums import RngAlgorithm
from oplet.schema.stablehlo_options import StablehloRngBitGeneratorOptions
from oplet_builtin_ops.control.philox import philox4x32, threefry2x32

_BITS = TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64
_TYPES = (TensorType.UINT64,)


#: The blocks that are computed at a time.
_BLOCKS = 1 << 16


def prepare(context: Context, node: Node) -> None:
    """Check the state of an RNG_BIT_GENERATOR node; the output's shape is the declared one."""
    ensure_operands(node, 1, 2)
    state, (after, output) = node.inputs[0], node.outputs
    ensure_type(state, *_TYPES)
    ensure_type(after, TensorType.UINT64)
    ensure_type(output, *_BITS)
    algorithm = node.options(StablehloRngBitGeneratorOptions).algorithm
    sizes = (2,) if algorithm is RngAlgorithm.THREEFRY else (2, 3)
    ensure(
        state.ndim == 1 and state.shape[0] in sizes,
        f"the state {state} of {algorithm.name} must be a vector of {' or '.join(map(str, sizes))}.",
    )
    ensure(after.shape == state.shape, f"the state {state} and the state after it, {after}, differ in shape.")


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that generates many blocks at a time; the lower half of the counter increases by one per block."""
    threefry = node.options(StablehloRngBitGeneratorOptions).algorithm is RngAlgorithm.THREEFRY
    state, after, output = node.inputs[0].data, node.outputs[0].data, node.outputs[1].data
    target = output.reshape(-1).view(np.uint32)
    blocks = -(-target.size // (2 if threefry else 4))
    width = 2 if threefry else 4

    def run() -> None:
        words = state.view(np.uint32)
        key = int(words[0]), int(words[1])
        for first in range(0, blocks, _BLOCKS):
            checkpoint()
            counter = np.arange(first, min(first + _BLOCKS, blocks), dtype=np.uint64) + state[1]
            low, high = counter & np.uint64(0xFFFFFFFF), counter >> np.uint64(32)
            if threefry:
                bits = threefry2x32(key, (low, high))
            else:
                bits = philox4x32(key, (low, high, *(words[4:6] if words.size == 6 else words[:2])))
            part = target[first * width : (first + _BLOCKS) * width]
            part[:] = bits.reshape(-1)[: part.size]
        after[...] = state
        after[1] = state[1] + np.uint64(blocks)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
