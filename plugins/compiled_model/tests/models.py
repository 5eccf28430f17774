"""Models and arrays that tests of this package share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter, ModelBuilder
from oplet_compiled_model import CompiledModel
from oplet_testing import Spec, one_op_model

__all__ = ["F32", "aligned", "doubling", "model_of"]

F32 = np.float32


def aligned(shape: tuple[int, ...], dtype: Any, offset: int = 0) -> NDArray[Any]:
    """Zeros at an address that is a multiple of 64, or so many bytes behind one."""
    kind = np.dtype(dtype)
    nbytes = int(np.prod(shape)) * kind.itemsize
    block = np.zeros(nbytes + 128, np.uint8)
    start = -block.ctypes.data % 64 + offset
    return block[start : start + nbytes].view(kind).reshape(shape)


def model_of(op: str, *inputs: Spec, outputs: tuple[Spec, ...] = ()) -> CompiledModel:
    """A model of one operator; its output is like its first input unless given."""
    return CompiledModel.from_buffer(one_op_model(op, inputs, outputs or inputs[:1]))


def doubling(size: int, nodes: int = 2, **arguments: Any) -> CompiledModel:
    """A model that adds its input to itself again and again, with the signature "double"; arguments are the interpreter's."""
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    for number in range(nodes + 1):
        graph.add_tensor(f"t{number}", F32, [size])
    for number in range(nodes):
        graph.add_operator("ADD", [number, number], [number + 1])
    graph.set_inputs(0)
    graph.set_outputs(nodes)
    builder.add_signature("double", {"x": 0}, {"y": nodes})
    content = builder.to_bytes()
    return CompiledModel(Interpreter(model_content=content, **arguments)) if arguments else CompiledModel.from_buffer(content)
