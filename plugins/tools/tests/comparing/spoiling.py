"""A chain of five nodes to compare, and a delegate that spoils what nodes write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import DelegateKernel, DelegateParams, Node, Tensor
from oplet_testing import Graph, Op, Spec, WrappingDelegate

__all__ = ["CHAIN", "VECTOR", "Spoiling"]

VECTOR = Spec("float32", [4])
#: b = tanh(a); d = tanh(relu(b)); f = tanh(relu(d)).
CHAIN = Graph(
    dict.fromkeys("abcdef", VECTOR),
    "a",
    "f",
    [Op("TANH", "a", "b"), Op("RELU", "b", "c"), Op("TANH", "c", "d"), Op("RELU", "d", "e"), Op("TANH", "e", "f")],
)


class Spoiling(WrappingDelegate):
    """Multiplies what nodes write, by its option `by`.

    Other options: `claims`, names of ops joined by +; `node` and `op`, which of the claimed to spoil; `least`, from how many nodes
    in a partition on.
    """

    name = "spoiling"

    def __init__(self, options: Any = None) -> None:
        self.told = dict(options or {})
        self.spoiled: set[int] = set()
        ops = self.told.get("claims", "").split("+")
        super().__init__(lambda context, node: ops == [""] or node.op_name in ops)

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        if len(params.nodes) >= int(self.told.get("least", 1)):
            self.spoiled.update(map(id, filter(self._means, params.nodes)))
        return super().create_kernel(params)

    def _means(self, node: Node) -> bool:
        return int(self.told.get("node", node.index)) == node.index and self.told.get("op", node.op_name) == node.op_name

    def around(self, node: Node, thunk: Callable[[], None]) -> Callable[[], None]:
        if id(node) not in self.spoiled:
            return thunk

        def run() -> None:
            thunk()
            self.spoil(node.outputs[0])

        return run

    def spoil(self, out: Tensor) -> None:
        factor = float(self.told.get("by", 1))
        if out.data.dtype.kind == "f":
            out.data[...] *= out.dtype.type(factor)
        else:
            steps = np.rint((out.data.astype(np.float64) - out.zero_point) * factor) + out.zero_point
            limits = np.iinfo(out.data.dtype)
            out.data[...] = np.clip(steps, limits.min, limits.max)
