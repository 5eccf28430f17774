"""STABLEHLO_RNG_BIT_GENERATOR, compiled."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, decline
from oplet.schema.enums import RngAlgorithm
from oplet.schema.stablehlo_options import StablehloRngBitGeneratorOptions
from oplet_builtin_ops.ops.stablehlo_rng_bit_generator import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.random_words import PHILOX_BITS, THREEFRY_BITS
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most bytes that one call draws, as it is not stopped.
_MOST = 1 << 22


def plan(context: Context, node: Node) -> Bind:
    state, (after, output) = node.inputs[0], node.outputs
    if not 0 < output.nbytes <= _MOST or output.nbytes % 4:
        decline("there is nothing to draw, too much for one call, or no whole words.")
    threefry = node.options(StablehloRngBitGeneratorOptions).algorithm is RngAlgorithm.THREEFRY
    kernel = THREEFRY_BITS if threefry else PHILOX_BITS
    ready(kernel)

    def bind() -> Thunk:
        return thunk([Step(kernel, [(flat(state.data), flat(after.data), flat(output.data).view(np.uint32))])])

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits())
