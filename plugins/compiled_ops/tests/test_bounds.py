"""What models cannot make compiled kernels take: memory for constants that are laid out anew, and kernels without number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import compiled

from oplet import Interpreter, Limits, ModelBuilder
from oplet.errors import LimitError
from oplet.schema.enums import Padding
from oplet.schema.options import Conv2DOptions

PLUGINS = ["oplet-builtin-ops", "oplet-compiled-ops"]


def convolutions(count: int, filled: bool, filters: int = 64, size: int = 4) -> bytes:
    """As many nodes that read the same weights, 64 kB for 64 filters."""
    builder = ModelBuilder("many")
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", np.float32, (1, size, size, 256))
    shape = filters, 1, 1, 256
    if filled:
        weights = graph.add_tensor("w", np.float32, shape)
        dims, one = (graph.add_tensor(name, data.dtype.type, data.shape, data=data) for name, data in (
            ("dims", np.array(shape, np.int32)), ("one", np.array(1, np.float32)),
        ))  # fmt: skip
        graph.add_operator("FILL", [dims, one], [weights])
    else:
        weights = graph.add_tensor("w", np.float32, shape, data=np.ones(shape, np.float32))
    outputs = [graph.add_tensor(f"y{number}", np.float32, (1, size, size, filters)) for number in range(count)]
    options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1)
    for output in outputs:
        graph.add_operator("CONV_2D", [x, weights, -1], [output], options)
    graph.set_inputs(x)
    graph.set_outputs(*outputs)
    return builder.to_bytes()


def allocated(model: bytes, **limits: Any) -> Interpreter:
    interpreter = Interpreter(model_content=model, plugins=PLUGINS, limits=Limits(**limits))
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("filled", [False, True])
def test_weights_that_many_nodes_lay_out_count_against_the_limit_on_memory(filled: bool) -> None:
    model = convolutions(40, filled)
    assert compiled(allocated(model)) == 40
    with pytest.raises(LimitError):
        allocated(model, max_arena_bytes=1_000_000)


@pytest.mark.parametrize("filled", [False, True])
def test_weights_that_one_node_lays_out_are_not_counted_twice(filled: bool) -> None:
    model = convolutions(1, filled)
    # 20 kB of maps, 64 kB of weights in the layout of the kernel, and those that FILL makes.
    assert compiled(allocated(model, max_arena_bytes=160_000 if filled else 95_000)) == 1


def test_few_filters_are_laid_out_as_many_only_where_there_is_room() -> None:
    model = convolutions(1, False, filters=1, size=2)
    assert compiled(allocated(model)) == 1
    few = allocated(model, max_arena_bytes=10_000)
    assert compiled(few) == 0
    few.invoke()
