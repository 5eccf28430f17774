from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Allocation, BuiltinOperator, Node, OpResolverType, Quantization, Tensor, TensorType
from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType, FullyConnectedOptionsWeightsFormat
from oplet.schema.options import FullyConnectedOptions
from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

Function = Callable[..., Any]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shapes", [((1, 7), (5, 7)), ((3, 40), (16, 40)), ((20, 300), (9, 300)), ((2, 2, 6), (3, 6))], ids=str)
def test_results_equal_litert_s(
    shapes: Any, kind: str, bias: bool, litert: Function, layer: Function, assert_equal: Function
) -> None:
    for activation in (ActivationFunctionType.NONE, ActivationFunctionType.RELU):
        options = FullyConnectedOptions(fused_activation_function=activation, asymmetric_quantize_inputs=bias)
        model, feeds = layer("FULLY_CONNECTED", kind, *shapes, options, bias=bias)
        assert_equal(
            kind, run_op(model, *feeds, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)[0], litert(model, *feeds)[0]
        )


def test_weights_may_arrive_at_run_time(kind: str, litert: Function, layer: Function, assert_equal: Function) -> None:
    model, feeds = layer("FULLY_CONNECTED", kind, (2, 6), (4, 6), FullyConnectedOptions(), constant=False)
    assert_equal(kind, run_op(model, *feeds)[0], litert(model, *feeds)[0])


def test_large_integer_weights_are_converted_piece_by_piece(
    kind: str, litert: Function, layer: Function, assert_equal: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oplet_builtin_ops.layers.integer_rows._LARGE", 100)
    monkeypatch.setattr("oplet_builtin_ops.layers.integer_rows._PIECE", 60)
    model, feeds = layer("FULLY_CONNECTED", kind, (3, 20), (14, 20), FullyConnectedOptions())
    assert_equal(
        kind, run_op(model, *feeds, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)[0], litert(model, *feeds)[0]
    )


def test_dimensions_are_kept_when_asked_for() -> None:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    source = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    for keep, shape in ((True, (2, 2, 2)), (False, (4, 2))):
        specs = [Spec("float32", source.shape), weights]
        options = FullyConnectedOptions(keep_num_dims=keep)
        model = one_op_model("FULLY_CONNECTED", specs, [Spec("float32", (1, 1))], options, version=5)
        np.testing.assert_array_equal(run_op(model, source)[0], (source @ weights.T).reshape(shape))


@pytest.mark.parametrize(("type", "low", "high"), [(TensorType.INT4, -8, 8), (TensorType.INT2, -2, 2)])
@pytest.mark.parametrize("source_type", ["int8", "int16"])
def test_weights_of_few_bits_are_integers_like_others(type: TensorType, low: int, high: int, source_type: str) -> None:
    random = np.random.default_rng(0)
    weights = random.integers(low, high, (6, 16)).astype(np.int8)
    source = random.integers(-100, 100, (2, 16)).astype(source_type)
    results = []
    for spec_type in (type, TensorType.INT8):
        specs = [Spec(source_type, (2, 16), [0.5], [0]), Spec(spec_type, (6, 16), [0.25], [0], data=weights)]
        model = one_op_model("FULLY_CONNECTED", specs, [Spec(source_type, (1, 1), [4.0], [0])], version=13)
        results.append(run_op(model, source)[0])
    np.testing.assert_array_equal(*results)


def test_int16_weights_are_multiplied_exactly() -> None:
    source, weights = np.array([[32767, -32768]], np.int16), np.array([[32767, 32767], [1, 0]], np.int16)
    specs = [Spec("int16", (1, 2), [0.5], [0]), Spec("int16", (2, 2), [1.0], [0], data=weights)]
    model = one_op_model("FULLY_CONNECTED", specs, [Spec("int16", (1, 1), [1.0], [0])], version=14)
    assert run_op(model, source)[0].tolist() == [[-16383, 16384]]


def test_blocks_of_a_row_may_have_scales_of_their_own() -> None:
    weights = np.arange(-8, 8, dtype=np.int8).reshape(2, 8)
    scales = np.array([[1, 2], [4, 0.5]], np.float32)
    quantization = Quantization(scales.ravel(), np.zeros(4, np.int64), quantized_dimension=0, block_size=4)
    constant = Tensor(1, "weights", TensorType.INT4, (2, 8), quantization=quantization, allocation=Allocation.CONSTANT)
    constant.data = weights
    source = Tensor(0, "input", TensorType.FLOAT32, (1, 8))
    node = Node(0, BuiltinOperator.FULLY_CONNECTED, "FULLY_CONNECTED", 12, [source, constant], [])
    layer = HybridLayer(node, source, constant, None, 0, True, ActivationFunctionType.NONE, 1)
    np.testing.assert_array_equal(layer.rows() * layer.scales, weights * np.repeat(scales, 4, axis=1))


@pytest.mark.parametrize("rows", [1, 4])
def test_shuffled_weights_equal_litert_s(rows: int, litert: Function) -> None:
    random = np.random.default_rng(0)
    weights = random.integers(0, 256, (8, 32)).astype(np.uint8)
    source = random.integers(0, 256, (rows, 32)).astype(np.uint8)
    specs = [
        Spec("uint8", (rows, 32), [1 / 128], [128]),
        Spec("uint8", (8, 32), [1 / 128], [128], data=weights),
        Spec("int32", (8,), [1 / 128**2], [0], data=random.integers(-5000, 5000, 8).astype(np.int32)),
    ]
    options = FullyConnectedOptions(weights_format=FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8)
    outputs = [Spec("int16", (rows, 8), [2.0**-12], [0]), Spec("uint8", (rows, 32), [1 / 128], [128])]
    model = one_op_model("FULLY_CONNECTED", specs, outputs, options, version=2)
    np.testing.assert_array_equal(run_op(model, source)[0], litert(model, source)[0])


@pytest.mark.parametrize(
    ("source", "weights", "bias", "options", "reason"),
    [
        ((1, 5), (3, 4), 3, {}, "cannot be cut into rows of 4"),
        ((1, 4), (3, 4), 2, {}, "must have 3 values"),
        ((1, 4), (3, 0), 3, {}, "cannot be cut into rows of 0"),
        ((1, 4), (3, 2, 2), 3, {}, "must have 2 dimensions"),
        ((2, 6), (3, 4), 3, {"keep_num_dims": True}, "last dimension .* must be 4"),
        ((1, 4), (3, 4), 3, {"fused_activation_function": ActivationFunctionType.TANH}, "TANH cannot be fused"),
    ],
)
def test_a_wrong_model_is_refused(source: Any, weights: Any, bias: int, options: dict[str, Any], reason: str) -> None:
    specs = [Spec("float32", source), np.zeros(weights, np.float32), np.zeros(bias, np.float32)]
    model = one_op_model("FULLY_CONNECTED", specs, [Spec("float32", (1, 1))], FullyConnectedOptions(**options))
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros(source, np.float32))


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_a_layer_without_units_gives_nothing(kind: str) -> None:
    weights = Spec("int8", [0, 4], [0.5], [0]) if kind == "int8" else Spec("float32", [0, 4])
    model = one_op_model(
        "FULLY_CONNECTED", [Spec("float32", [2, 4]), weights, None], [Spec("float32", [2, 0])], FullyConnectedOptions()
    )
    assert run_op(model, np.ones((2, 4), np.float32), np.zeros((0, 4), kind))[0].shape == (2, 0)
