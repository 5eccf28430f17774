"""NON_MAX_SUPPRESSION_V4 and _V5: their registrations. Where values are NaN or infinite, numpy's kernel runs instead of the
compiled loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, Registration, charge, checkpoint
from oplet_compiled_ops.library.memory import writable
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.suppression import PLACE_WORDS, SUPPRESS

__all__ = ["suppression_registration"]

#: Bytes of scratch for each box.
_BOX_BYTES = 44


def suppression_registration(builtin: Registration) -> Registration:
    """Build the registration of NON_MAX_SUPPRESSION_V4 or _V5."""

    def plan(context: Context, node: Node) -> Bind:
        charge(_BOX_BYTES * node.inputs[1].size)
        SUPPRESS.entry()
        bind_numpy: Any = builtin.bind

        def bind() -> Thunk:
            compiled = SUPPRESS.compiled()
            boxes, scores, _, overlap, threshold, *sigmas = (writable(tensor.data) for tensor in node.inputs)
            found, *others, number = (tensor.data for tensor in node.outputs)
            kept = others[0] if others else np.empty(found.shape, np.float32)
            count = len(scores)
            scratch = np.empty((count, 5), np.float32), np.empty(count, np.float32), np.empty((count, 2), np.int64)
            place = np.zeros(PLACE_WORDS, np.int64)
            by_numpy = bind_numpy(context, node)

            def run() -> None:
                sigma = sigmas[0].item() if sigmas else 0.0
                # NaN compares in its own way, which the compiled loop does not imitate.
                if not sigma >= 0 or not np.isfinite(boxes).all():
                    by_numpy()
                    return
                scale = np.float32(-0.5 / sigma) if sigma else 0.0
                arguments = (
                    boxes, scores, *scratch, overlap.item(), threshold.item(), scale, found, kept, number.reshape(1), place,
                )  # fmt: skip
                compiled(*arguments, 0)
                while number < 0:
                    checkpoint()
                    compiled(*arguments, 1)

            return run

        return bind

    return override(builtin, plan, NodeLimits(constant=[2]))
