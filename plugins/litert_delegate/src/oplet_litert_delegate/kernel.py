"""Kernel of a partition: LiteRT's invoke, and the copies before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, DelegateKernel, Node, charge
from oplet.errors import DelegateApplicationError, InvokeError, LimitError, ModelError
from oplet_litert_delegate.engine import Engine, Port, RefusedError

__all__ = ["LiteRTKernel"]

Step = Callable[[], None]


class LiteRTKernel(DelegateKernel):
    """Runs one partition in LiteRT.

    Boundary tensors live in LiteRT's memory if the runtime accepts that; others are copied.
    """

    def __init__(self, engine: Engine, make_engine: Callable[[], Engine]) -> None:
        """Keep the engine that the claim made, and the means to replace it.

        Args:
            engine: the engine for the present shapes.
            make_engine: makes another one when shapes have changed.
        """
        self._engine: Engine | None = engine
        self._make_engine = make_engine

    def prepare(self, context: Context, node: Node) -> None:
        if self._engine is None or not self._engine.part.fits:
            self._engine = None  # two of them need not be in memory at once
            try:
                self._engine = self._make_engine()
            except (RefusedError, ModelError) as error:
                raise DelegateApplicationError(f"The shapes are others now, and {error}.") from error  # it is asked again
        else:
            with suppress(LimitError):  # it was allowed when it was made, beside what there was then
                charge(self._engine.nbytes)
        engine = self._current
        for port in engine.outputs:
            context.resize_tensor(port.tensor, () if port.view is None else port.view.shape)
        offered: list[NDArray[Any]] = []
        for port in (*engine.inputs, *engine.outputs):
            # What a node passes on unchanged may have its input's memory in LiteRT.
            if port.view is not None and not any(np.may_share_memory(port.view, other) for other in offered):
                offered.append(port.view)
                context.offer_memory(port.tensor, port.view)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        engine = self._current
        context.drop_computed(node)  # LiteRT unpacks weights itself
        before = [step for port in (*engine.inputs, *engine.variables) for step in _inward(engine, port)]
        after = [step for port in (*engine.outputs, *engine.variables) for step in _outward(engine, port)]
        invoke = engine.run

        def run() -> None:
            for step in before:
                step()
            try:
                invoke()
            except RuntimeError as error:
                raise InvokeError(engine.explained(error)) from error
            for step in after:
                step()

        return run

    def free(self, context: Context) -> None:
        self._engine = None

    @property
    def _current(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("the kernel was freed")
        return self._engine


def _inward(engine: Engine, port: Port) -> Iterator[Step]:
    """Yield the steps that copy the tensor's value to LiteRT; none if memory is shared."""
    data = port.tensor.data
    if port.view is None:
        yield partial(engine.set, port.number, data)
    elif data is not port.view and data.size:
        yield partial(np.copyto, port.view, data)


def _outward(engine: Engine, port: Port) -> Iterator[Step]:
    """Yield the steps that copy LiteRT's value to the tensor; none if memory is shared."""
    data, get = port.tensor.data, engine.get
    if port.view is None:
        yield lambda: np.copyto(data, get(port.number))
    elif data is not port.view and data.size:
        yield partial(np.copyto, data, port.view)
