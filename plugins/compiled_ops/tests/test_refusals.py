"""Whether kernels compute the nodes before them too is told by no outcome: what is refused, where, and what may be set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.errors import InvokeError, OpletError, PrepareError, TensorError
from oplet.runtime.memory.remembered import forget_plans
from oplet.schema.options import (
    ConcatenationOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    PadOptions,
    TopKV2Options,
)
from oplet_testing import Spec
from oplet_testing.graphs import Graph, Op, graph_model

X, Z, MIDDLE = 0, 1, 2
SHAPES = [(1, 8, 8, 4), (6,)]
ENGINES = {"numpy": ["builtin_ops"], "compiled": None}


def f32(*shape: int) -> Spec:
    return Spec("float32", shape)


def border_before_topk() -> bytes:
    """A border of x, then the largest of z, then the layer that writes no border."""
    random = np.random.default_rng(0)
    tensors = {
        "x": f32(1, 8, 8, 4), "z": f32(6), "padded": f32(1, 10, 10, 4), "values": f32(3), "places": Spec("int32", (3,)),
        "y": f32(1, 8, 8, 4), "paddings": np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32), "k": np.array(3, np.int32),
        "w": random.standard_normal((1, 3, 3, 4)).astype(np.float32), "b": np.zeros(4, np.float32),
    }  # fmt: skip
    layer = DepthwiseConv2DOptions(depth_multiplier=1, stride_h=1, stride_w=1, padding=1)
    ops = [
        Op("PAD", "x paddings", "padded", PadOptions()),
        Op("TOPK_V2", "z k", "values places", TopKV2Options()),
        Op("DEPTHWISE_CONV_2D", "padded w b", "y", layer),
    ]
    return graph_model(Graph(tensors, "x z", "y values places", ops))


def layer_before_concatenation() -> bytes:
    """A layer on z, whose columns are looked at when it runs, then x behind a constant, then the clamp of the layer."""
    tensors = {
        "x": f32(1, 8, 8, 4), "z": f32(6), "h": f32(2, 5), "joined": f32(1, 8, 8, 8), "y": f32(2, 5), "more": np.ones((1, 8, 8, 4), np.float32),
        "w": np.ones((5, 3), np.float32), "b": np.zeros(5, np.float32),
    }  # fmt: skip
    ops = [
        Op("FULLY_CONNECTED", "z w b", "h", FullyConnectedOptions()),
        Op("CONCATENATION", "x more", "joined", ConcatenationOptions(axis=3)),
        Op("RELU", "h", "y"),
    ]
    return graph_model(Graph(tensors, "x z", "y joined", ops))


def outcome(model: bytes, plugins: Any, shapes: list[tuple[int, ...]]) -> list[str]:
    """What each call answers: the class of its error, or "done"."""
    forget_plans()
    interpreter = Interpreter(model_content=model, plugins=plugins)
    interpreter.allocate_tensors()
    for index, shape in enumerate(shapes):
        interpreter.resize_tensor_input(index, shape)
    found = []
    for step in (interpreter.allocate_tensors, interpreter.invoke):
        try:
            step()
            found.append("done")
        except OpletError as error:
            found.append(type(error).__name__ + " " + str(error).partition("Node number")[2][:2])
    return found


@pytest.mark.parametrize(
    ("model", "shapes", "expected"),
    [
        (border_before_topk, [(8, 4), (2,)], PrepareError),
        (border_before_topk, [(1, 8, 8, 4), (2,)], InvokeError),
        (border_before_topk, [(1, 8, 8, 5), (2,)], InvokeError),
        (border_before_topk, [(8, 4), (6,)], PrepareError),
        (layer_before_concatenation, [(2, 3, 3, 4), (7,)], InvokeError),
        (layer_before_concatenation, [(2, 3, 3, 4), (6,)], PrepareError),
        (layer_before_concatenation, SHAPES, None),
        (border_before_topk, SHAPES, None),
    ],
)
def test_a_refused_resize_has_one_outcome(model: Any, shapes: list[tuple[int, ...]], expected: type[OpletError] | None) -> None:
    found = {engine: outcome(model(), plugins, shapes) for engine, plugins in ENGINES.items()}
    assert found["compiled"] == found["numpy"]
    told = "" if expected is None else expected.__name__
    assert next((one.split()[0] for one in found["numpy"] if one != "done"), "") == told


@pytest.mark.parametrize("plugins", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize(("model", "shape"), [(border_before_topk, (1, 10, 10, 4)), (layer_before_concatenation, (2, 5))])
def test_what_is_set_in_between_is_computed_anew(plugins: Any, model: Any, shape: tuple[int, ...]) -> None:
    forget_plans()
    interpreter = Interpreter(model_content=model(), plugins=plugins)
    interpreter.allocate_tensors()
    random = np.random.default_rng(1)
    given = [random.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    outputs = []
    for sets in (False, True):
        if sets:
            interpreter.set_tensor(MIDDLE, np.full(shape, 7, np.float32))
        for index, value in enumerate(given):
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        outputs.append([interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()])
    for before, after in zip(*outputs):
        np.testing.assert_array_equal(before, after)
    for wrong in (
        np.full(shape, 7, np.float64),
        np.full((*shape, 1), 7, np.float32),
        np.full((shape[0] + 1, *shape[1:]), 7, np.float32),
    ):
        with pytest.raises(TensorError):
            interpreter.set_tensor(MIDDLE, wrong)


@pytest.mark.parametrize("plugins", ENGINES.values(), ids=ENGINES)
def test_a_tensor_of_a_refused_resize_has_no_memory_to_set(plugins: Any) -> None:
    forget_plans()
    interpreter = Interpreter(model_content=layer_before_concatenation(), plugins=plugins)
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(X, (2, 3, 3, 4))
    interpreter.resize_tensor_input(Z, (12,))
    with pytest.raises(PrepareError):
        interpreter.allocate_tensors()
    with pytest.raises(TensorError, match="allocate_tensors"):
        interpreter.set_tensor(MIDDLE, np.zeros((4, 5), np.float32))
