"""What models cannot make compiled kernels take: memory for constants that are laid out anew, and kernels without number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import compiled

from oplet import Interpreter, Limits, ModelBuilder
from oplet.errors import LimitError
from oplet.schema.enums import Padding
from oplet.schema.options import Conv2DOptions, DepthwiseConv2DOptions
from oplet_compiled_ops.convolution import taps
from oplet_testing.harness.graph_access import keep_plan

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


def depthwise(sizes: list[tuple[int, int]]) -> bytes:
    """A layer for each size of filter."""
    builder = ModelBuilder("sizes")
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", np.float32, (1, 9, 9, 3))
    options = DepthwiseConv2DOptions(
        padding=Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1, dilation_h_factor=1, dilation_w_factor=1
    )
    outputs = []
    for rows, columns in sizes:
        weights = np.ones((1, rows, columns, 3), np.float32)
        filters = graph.add_tensor(f"w{len(outputs)}", np.float32, weights.shape, data=weights)
        outputs.append(graph.add_tensor(f"y{len(outputs)}", np.float32, (1, 9, 9, 3)))
        graph.add_operator("DEPTHWISE_CONV_2D", [x, filters, -1], [outputs[-1]], options)
    graph.set_inputs(x)
    graph.set_outputs(*outputs)
    return builder.to_bytes()


def test_a_model_gets_kernels_for_so_many_sizes_of_filters_only_and_so_does_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    model = depthwise([(1, 1), (1, 2), (1, 1), (2, 1), (1, 2)])
    for most_of_a_model, most, wanted in ((16, 64, 5), (2, 64, 4), (16, 1, 2), (16, 0, 0)):
        monkeypatch.setattr(taps, "_MOST_OF_A_MODEL", most_of_a_model)
        monkeypatch.setattr(taps, "_MOST", most)
        monkeypatch.setattr(taps, "_of_this_process", set())
        for _ in range(2):
            interpreter = keep_plan(Interpreter(model_content=model, plugins=PLUGINS))  # which the next bounds are not for
            interpreter.allocate_tensors()
            assert compiled(interpreter) == wanted
            interpreter.invoke()
