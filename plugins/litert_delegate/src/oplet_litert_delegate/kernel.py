"""The kernel of a partition: copies to and from LiteRT's memory, and LiteRT's invoke between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, DelegateKernel, Node, ensure
from oplet_litert_delegate.engine import Engine

__all__ = ["LiteRTKernel"]


class LiteRTKernel(DelegateKernel):
    """Runs one partition in LiteRT."""

    def __init__(self, engine: Engine) -> None:
        self.engine: Engine | None = engine

    def prepare(self, context: Context, node: Node) -> None:
        engine = self._engine
        engine.resize([tensor.shape for tensor in engine.part.inputs])
        for tensor, shape in zip(engine.part.outputs, engine.output_shapes):
            context.resize_tensor(tensor, shape)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        engine = self._engine
        before = [(view, tensor.data) for view, tensor in zip(engine.inputs(), engine.part.inputs)]
        after = [(tensor.data, view) for view, tensor in zip(engine.outputs(), engine.part.outputs)]
        copy, invoke = np.copyto, engine.run

        def run() -> None:
            for there, here in before:
                copy(there, here)
            invoke()
            for here, there in after:
                copy(here, there)

        return run

    def free(self, context: Context) -> None:
        self.engine = None

    @property
    def _engine(self) -> Engine:
        ensure(self.engine is not None, "its kernel was freed")
        return self.engine  # type: ignore[return-value]
