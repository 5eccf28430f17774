"""NON_MAX_SUPPRESSION_V4 and _V5: which of their runs a compiled loop serves."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration
from oplet_numba_ops.memory import writable
from oplet_numba_ops.overriding import Bind, Thunk, override
from oplet_numba_ops.suppression import SUPPRESS

__all__ = ["suppression_registration"]


def suppression_registration(builtin: Registration) -> Registration:
    """The registration of either op."""

    def plan(context: Context, node: Node) -> Bind | None:
        if not node.inputs[2].is_constant or builtin.bind is None:
            return None
        compiled, bind_numpy = SUPPRESS.compiled(), builtin.bind

        def bind() -> Thunk:
            boxes, scores, _, overlap, threshold, *sigmas = (tensor.data for tensor in node.inputs)
            boxes = writable(boxes)
            *chosen, number = (tensor.data for tensor in node.outputs)
            found = np.empty(chosen[0].size + 1, np.int64)
            suppressed, corners = np.empty(len(scores), np.bool_), np.empty((5, len(scores)), np.float32)
            by_numpy = bind_numpy(context, node)

            def run() -> None:
                candidates = np.flatnonzero(scores > threshold)
                order = candidates[np.argsort(-scores[candidates], kind="stable")]
                ranked = scores[order]
                # Among equal scores LiteRT's queue has an order of its own, and the soft form has more to it.
                if (sigmas and sigmas[0] != 0) or (ranked[1:] == ranked[:-1]).any() or not np.isfinite(boxes).all():
                    by_numpy()
                    return
                count = len(order)
                compiled(boxes, order, suppressed[:count], corners, overlap.item(), min(count, len(found) - 1), found)
                total = found[-1]
                number[...] = total
                for target, values in zip(chosen, (found[:total], None)):
                    target[:total] = scores[found[:total]] if values is None else values
                    target[total:] = 0

            return run

        return bind

    return override(builtin, plan)
