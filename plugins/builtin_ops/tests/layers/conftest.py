"""Models of one layer with weights, random but for what a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.schema.table import Table
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

#: Kinds of layers: the types of activations and weights, and whether each output channel has a scale of its own.
KINDS = {
    "float": ("float32", "float32", False),
    "int8": ("int8", "int8", False),
    "int8 per channel": ("int8", "int8", True),
    "uint8": ("uint8", "uint8", False),
    "int16 per channel": ("int16", "int8", True),
    "hybrid": ("float32", "int8", False),
    "hybrid per channel": ("float32", "int8", True),
}
ZERO_POINTS = {"int8": -5, "uint8": 121, "int16": 0}


def draw(random: np.random.Generator, type: str, shape: tuple[int, ...]) -> Any:
    if type == "float32":
        return random.normal(0, 2, shape).astype(np.float32)
    limits = np.iinfo(type)
    return random.integers(limits.min, limits.max + 1, shape).astype(type)


def make_layer(
    op: str,
    kind: str,
    source: tuple[int, ...],
    weights: tuple[int, ...],
    options: Table,
    *,
    axis: int = 0,
    bias: bool = True,
    before: tuple[Any, ...] = (),
    seed: int = 0,
    version: int = 6,
    constant: bool = True,
) -> tuple[bytes, list[Any]]:
    """The model and its feeds; `before` are inputs that come before the activations, the weights with them, if any."""
    random = np.random.default_rng(seed)
    type, weights_type, per_channel = KINDS[kind]
    channels = weights[axis]
    quantized = type != "float32"
    values = draw(random, weights_type, weights)
    if weights_type == "int8":
        values = np.maximum(values, -127)
    scales = random.uniform(0.004, 0.02, channels if per_channel else 1).astype(np.float32)
    zero_points = [ZERO_POINTS["uint8"] if weights_type == "uint8" else 0] * len(scales)
    scale = np.float32(0.05 if type != "int16" else 0.0002)
    depth = values.size // channels
    given: dict[str, Any] = {"scale": [scale], "zero_point": [ZERO_POINTS[type]]} if quantized else {}
    made = {**given, "scale": [scale * scales.mean() * 40 * np.sqrt(depth)]} if quantized else {}
    weights_given = {"scale": scales, "zero_point": zero_points, "axis": axis} if weights_type != "float32" else {}
    inputs: list[Any] = [
        Spec(type, source, **given),
        Spec(weights_type, weights, data=values if constant else None, **weights_given),
    ]
    if before:
        inputs = [*before, inputs[1], inputs[0]]
    if bias:
        bias_type = {"float32": "float32", "int16": "int64"}.get(type, "int32")
        data = draw(random, "float32", (channels,)) * (500 if quantized else 1)
        bias_given = {"scale": scale * scales, "zero_point": [0] * len(scales)} if quantized else {}
        inputs.append(Spec(bias_type, (channels,), data=data.astype(bias_type), **bias_given))
    model = one_op_model(op, inputs, [Spec(type, (1,) * len(source), **made)], options, version=version)
    return model, [draw(random, type, source), *([] if constant else [values])]


def assert_same(kind: str, ours: Any, theirs: Any) -> None:
    """Integers bit for bit, floats up to the order of sums, hybrid layers up to rounding in float32."""
    assert ours.shape == theirs.shape
    if not kind.startswith(("float", "hybrid")):
        np.testing.assert_array_equal(ours, theirs)
    else:
        tolerance = 1e-4 if kind == "hybrid" or kind == "hybrid per channel" else 1e-5
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * max(1, np.abs(theirs).max(initial=0)))


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of layer in turn."""
    return str(request.param)


@pytest.fixture
def layer() -> Callable[..., Any]:
    """`layer(op, kind, source, weights, options, ...)` makes a model and its feeds."""
    return make_layer


@pytest.fixture
def assert_equal() -> Callable[..., None]:
    """`assert_equal(kind, ours, theirs)` compares results as exactly as the kind of layer allows."""
    return assert_same
