"""RANDOM_UNIFORM, compiled: the same stream as the numpy kernel, bit for bit."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, checkpoint
from oplet_builtin_ops.control.randoms import RANDOM_UNIFORM as BUILTIN
from oplet_compiled_ops.elementwise.random_words import UNIFORM
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The numbers that are drawn at a time, whole blocks of four.
_PART = 1 << 18


def plan(context: Context, node: Node) -> Bind:
    stream = node.prepared
    ready(UNIFORM)
    state = np.zeros(3, np.uint64)

    def bind() -> Thunk:
        fit = stream.fitter(node)
        generator = bound = None
        draws: list[Thunk] = []

        def run() -> None:
            nonlocal generator, bound, draws
            array = fit()
            if (present := stream.generator()) is not generator:
                generator = present
                state[:] = generator.state
            if array is not bound:
                bound, values = array, flat(array)
                parts = (values[first : first + _PART] for first in range(0, values.size, _PART))
                draws = [thunk([Step(UNIFORM, [(state, part)])]) for part in parts]
            for draw in draws:
                draw()
                checkpoint()

        return run

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits())
