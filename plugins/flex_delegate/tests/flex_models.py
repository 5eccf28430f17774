"""Small models with Flex nodes, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from plugins.flex_ops.tests.nodedefs import flex_options

from oplet import Interpreter, ModelBuilder, TensorType, load_delegate

__all__ = ["FlexModel", "opened"]


class FlexModel:
    """A model that is put together node by node; tensors are called by their names."""

    def __init__(self) -> None:
        self._builder = ModelBuilder(minimum_runtime=False)
        self._graph = self._builder.add_subgraph()
        self._places: dict[str, int] = {}

    def tensor(self, name: str, type: Any, shape: Sequence[int | None] = (), data: Any = None) -> FlexModel:
        """Add a tensor; with data a constant."""
        self._places[name] = self._graph.add_tensor(name, type, list(shape), **({} if data is None else {"data": data}))
        return self

    def flex(self, op: str, reads: str, writes: str, **attributes: Any) -> FlexModel:
        """Add a Flex node that reads and writes these tensors, separated by blanks."""
        return self.node(f"Flex{op}", reads, writes, flex_options(op, attributes))

    def node(self, name: str, reads: str, writes: str, options: bytes | None = None) -> FlexModel:
        """Add any node, a custom op if it has custom options."""
        given = {} if options is None else {"custom": True, "custom_options": options}
        self._graph.add_operator(name, self._all(reads), self._all(writes), **given)
        return self

    def content(self, inputs: str, outputs: str) -> bytes:
        """The file."""
        self._graph.set_inputs(*self._all(inputs))
        self._graph.set_outputs(*self._all(outputs))
        return self._builder.to_bytes()

    def _all(self, names: str) -> list[int]:
        return [self._places[name] for name in names.split()]


def opened(content: bytes, options: Mapping[str, Any] | None = None, **arguments: Any) -> Interpreter:
    """An interpreter of the model with the delegate."""
    return Interpreter(model_content=content, experimental_delegates=[load_delegate("flex", options)], **arguments)


def run(interpreter: Interpreter, *inputs: Any) -> list[NDArray[Any]]:
    """One invoke; inputs may have other shapes than before."""
    for details, value in zip(interpreter.get_input_details(), inputs):
        array = np.asarray(value)
        if list(details["shape"]) != list(array.shape):
            interpreter.resize_tensor_input(details["index"], array.shape)
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(details["index"], np.asarray(value))
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def abs_model(op: str = "Abs", **attributes: Any) -> bytes:
    """A single node that reads and writes a vector of three floats."""
    model = FlexModel().tensor("x", np.float32, [3]).tensor("y", np.float32, [3])
    return model.flex(op, "x", "y", **{"T": TensorType.FLOAT32, **attributes}).content("x", "y")
