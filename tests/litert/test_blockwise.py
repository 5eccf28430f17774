"""Weights with a scale for each block of a row, alone: as XNNPACK multiplies with them, and as float arithmetic does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.differential.harness import Case, LiteRT

from oplet import ModelBuilder, TensorType
from oplet.builder import BlockwiseQuantization, QuantizationParameters
from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import BatchMatMulOptions, DequantizeOptions, FullyConnectedOptions, GatherOptions
from oplet_testing import run_op

Array = np.ndarray[Any, Any]
LIMITS = {TensorType.INT8: 128, TensorType.INT4: 8, TensorType.INT2: 2}
KINDS = list(LIMITS)


class Blocks(NamedTuple):
    """Weights of a model: their tensor, and their values."""

    tensor: int
    values: Array


def add_weights(
    graph: Any,
    random: np.random.Generator,
    kind: TensorType,
    shape: tuple[int, ...],
    block: int,
    *,
    half: bool = True,
    zero_points: int | None = None,
    dead: bool = False,
) -> Blocks:
    """Random weights; `dead` gives the blocks of every third row a scale of 0."""
    limit = LIMITS[kind]
    values = random.integers(-limit, limit, shape).astype(np.int8)
    counts = (*shape[:-1], -(-shape[-1] // block))
    scales = random.uniform(0.01, 0.1, counts).astype(np.float16 if half else np.float32)
    if dead:
        scales[::3] = 0
    tensor = graph.add_tensor("scales", TensorType.FLOAT16 if half else TensorType.FLOAT32, counts, data=scales)
    points = -1
    if zero_points is not None:
        points = graph.add_tensor("zero points", TensorType.INT32, counts, data=np.full(counts, zero_points, np.int32))
    details = BlockwiseQuantization(scales=tensor, zero_points=points, block_size=block)
    weights = graph.add_tensor("weights", kind, shape, data=values, quantization=QuantizationParameters(details=details))
    return Blocks(weights, values * scales.astype(np.float64).repeat(block, -1)[..., : shape[-1]])


def layer(
    kind: TensorType = TensorType.INT4,
    rows: tuple[int, ...] = (3,),
    units: int = 17,
    depth: int = 64,
    block: int = 32,
    bias: bool = True,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
    keep: bool = False,
    seed: int = 0,
    **weights: Any,
) -> tuple[bytes, Array, Array]:
    """The model of one FULLY_CONNECTED, what to feed it, and what float arithmetic gives."""
    random = np.random.default_rng(seed)
    builder = ModelBuilder("blocks")
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", TensorType.FLOAT32, (*rows, depth))
    made = add_weights(graph, random, kind, (units, depth), block, **weights)
    added = random.normal(0, 1, units).astype(np.float32) if bias else np.zeros(units, np.float32)
    given = [x, made.tensor, graph.add_tensor("bias", TensorType.FLOAT32, (units,), data=added)] if bias else [x, made.tensor]
    y = graph.add_tensor("y", TensorType.FLOAT32, (*rows, units) if keep else (int(np.prod(rows)), units))
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator(
        "FULLY_CONNECTED", given, [y], FullyConnectedOptions(fused_activation_function=activation, keep_num_dims=keep)
    )
    values = random.normal(0.2, 1, (*rows, depth)).astype(np.float32)
    exact = values.reshape(-1, depth) @ made.values.T + added
    low, high = {"RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}.get(activation.name, (-np.inf, np.inf))
    return builder.build().to_bytes(), values, exact.clip(low, high)


def assert_near(found: Array, wanted: Array, tolerance: float) -> None:
    assert np.abs(found.reshape(wanted.shape) - wanted).max() <= tolerance * np.abs(wanted).max()


XNNPACK: dict[str, dict[str, Any]] = {
    "blocks of 32": {},
    "blocks of 64": {"depth": 128, "block": 64},
    "blocks of 128": {"depth": 256, "block": 128},
    "blocks of 256": {"depth": 512, "block": 256},
    "blocks of 96": {"depth": 192, "block": 96},
    "one row": {"rows": (1,)},
    "many rows": {"rows": (40,)},
    "no bias": {"bias": False},
    "deep": {"depth": 2048, "rows": (2,)},
    "rows of rows": {"rows": (2, 3), "keep": True},
    "RELU": {"activation": ActivationFunctionType.RELU},
    "RELU6": {"activation": ActivationFunctionType.RELU6},
    "RELU_N1_TO_1": {"activation": ActivationFunctionType.RELU_N1_TO_1},
    "zero points of 0": {"zero_points": 0},
    "zero points of 8": {"zero_points": 8},
}


@pytest.mark.parametrize("case", list(XNNPACK))
def test_int4_weights_are_multiplied_as_xnnpack_does(litert: LiteRT, engine: list[str], case: str) -> None:
    model, values, exact = layer(**XNNPACK[case])
    answer = litert.run(Case(model, [[values]]), "BUILTIN", seconds=30)
    assert answer.kind == "ran", answer.message
    found = run_op(model, values, plugins=engine)[0]
    assert found.shape == answer.outputs[0][0].shape
    assert_near(found, answer.outputs[0][0], 2e-6)
    assert_near(found, exact, 0.05)


@pytest.mark.parametrize("block", [16, 48, 8])
def test_blocks_that_xnnpack_does_not_take_are_multiplied_as_litert_does(litert: LiteRT, engine: list[str], block: int) -> None:
    model, values, _ = layer(depth=96, block=block)
    answer = litert.run(Case(model, [[values]]), "BUILTIN_WITHOUT_DEFAULT_DELEGATES", seconds=30)
    assert_near(run_op(model, values, plugins=engine)[0], answer.outputs[0][0], 1e-6)


FLOAT: dict[str, dict[str, Any]] = {
    "scales of 0": {"dead": True},
    "float32 scales": {"half": False},
    "a short last block": {"depth": 80},
    "a block longer than a row": {"depth": 24},
    "a shape of its own": {"rows": (2, 2), "keep": True, "block": 64, "units": 5},
    "many rows": {"rows": (33,)},
}


@pytest.mark.parametrize("case", list(FLOAT))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_litert_refuses_or_gets_wrong_is_what_float_arithmetic_gives(engine: list[str], kind: TensorType, case: str) -> None:
    model, values, exact = layer(kind, **FLOAT[case])
    assert_near(run_op(model, values, plugins=engine)[0], exact, 0.02)


def test_scales_of_0_do_as_litert_does(litert: LiteRT, engine: list[str]) -> None:
    model, values, _ = layer(dead=True)
    answer = litert.run(Case(model, [[values]]), "BUILTIN_WITHOUT_DEFAULT_DELEGATES", seconds=30)
    assert_near(run_op(model, values, plugins=engine)[0], answer.outputs[0][0], 1e-6)


def test_many_layers_in_one_model_keep_their_blocks(engine: list[str]) -> None:
    """Tables of quantization that have nothing but blocks are read together when they are many."""
    random = np.random.default_rng(3)
    builder = ModelBuilder("layers")
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", TensorType.FLOAT32, (2, 64))
    graph.set_inputs(x)
    values = random.normal(0, 1, (2, 64)).astype(np.float32)
    exact = values.astype(np.float64)
    for number in range(20):
        made = add_weights(graph, random, TensorType.INT4, (64, 64), 32)
        y = graph.add_tensor(f"y {number}", TensorType.FLOAT32, (2, 64))
        graph.add_operator("FULLY_CONNECTED", [x, made.tensor], [y], FullyConnectedOptions())
        x, exact = y, exact @ made.values.T
    graph.set_outputs(x)
    assert_near(run_op(builder.build().to_bytes(), values, plugins=engine)[0], exact, 0.2)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("shape", [(64, 96), (2, 64, 96), (2, 3, 32, 32)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_matrices_are_multiplied_with_weights_in_blocks(
    engine: list[str], kind: TensorType, shape: tuple[int, ...], adjoint: bool
) -> None:
    random = np.random.default_rng(1)
    builder = ModelBuilder("matrices")
    graph = builder.add_subgraph()
    depth, columns = shape[-2:][::-1] if adjoint else shape[-2:]
    x = graph.add_tensor("x", TensorType.FLOAT32, (*shape[:-2], 5, depth))
    made = add_weights(graph, random, kind, shape, 32)
    y = graph.add_tensor("y", TensorType.FLOAT32, (*shape[:-2], 5, columns))
    graph.set_inputs(x)
    graph.set_outputs(y)
    options = BatchMatMulOptions(adj_y=adjoint, asymmetric_quantize_inputs=True)
    graph.add_operator("BATCH_MATMUL", [x, made.tensor], [y], options, version=4)
    values = random.normal(0.2, 1, (*shape[:-2], 5, depth)).astype(np.float32)
    exact = values @ (made.values.swapaxes(-1, -2) if adjoint else made.values)
    assert_near(run_op(builder.build().to_bytes(), values, plugins=engine)[0], exact, 0.02)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("dead", [False, True])
def test_rows_of_a_table_in_blocks_are_exact(engine: list[str], kind: TensorType, half: bool, dead: bool) -> None:
    random = np.random.default_rng(1)
    builder = ModelBuilder("rows")
    graph = builder.add_subgraph()
    numbers = graph.add_tensor("numbers", TensorType.INT32, (4,))
    made = add_weights(graph, random, kind, (10, 128), 64, half=half, dead=dead)
    y = graph.add_tensor("y", TensorType.FLOAT32, (4, 128))
    graph.set_inputs(numbers)
    graph.set_outputs(y)
    graph.add_operator("EMBEDDING_LOOKUP", [numbers, made.tensor], [y], version=4)
    picked = np.array([3, 0, 9, 3], np.int32)
    np.testing.assert_array_equal(
        run_op(builder.build().to_bytes(), picked, plugins=engine)[0], made.values[picked].astype(np.float32)
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("shape", [(6, 64), (2, 3, 32), (5, 40)])
def test_tensors_in_blocks_are_dequantized(engine: list[str], kind: TensorType, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    builder = ModelBuilder("dequantize")
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", TensorType.FLOAT32, shape)
    made = add_weights(graph, random, kind, shape, 32)
    floats, y = (graph.add_tensor(name, TensorType.FLOAT32, shape) for name in ("floats", "y"))
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator("DEQUANTIZE", [made.tensor], [floats], DequantizeOptions())
    graph.add_operator("ADD", [floats, x], [y])
    found = run_op(builder.build().to_bytes(), np.zeros(shape, np.float32), plugins=engine)[0]
    np.testing.assert_array_equal(found, made.values.astype(np.float32))


@pytest.mark.parametrize("kind", [TensorType.INT8, TensorType.INT4], ids=lambda kind: kind.name)
def test_rows_that_are_gathered_of_a_table_in_blocks_are_its_integers(litert: LiteRT, kind: TensorType) -> None:
    random = np.random.default_rng(1)
    builder = ModelBuilder("gather")
    graph = builder.add_subgraph()
    numbers = graph.add_tensor("numbers", TensorType.INT32, (3,))
    made = add_weights(graph, random, kind, (10, 64), 32)
    y = graph.add_tensor("y", kind, (3, 64), scale=[0.05])
    graph.set_inputs(numbers)
    graph.set_outputs(y)
    graph.add_operator("GATHER", [made.tensor, numbers], [y], GatherOptions(axis=0), version=8)
    model, picked = builder.build().to_bytes(), np.array([3, 0, 9], np.int32)
    answer = litert.run(Case(model, [[picked]]), "BUILTIN_REF", seconds=30)
    np.testing.assert_array_equal(run_op(model, picked, plugins=["builtin_ops"])[0], answer.outputs[0][0])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("rows", [1, 3, 33])
def test_a_channel_whose_scale_is_0_gives_its_bias(engine: list[str], kind: TensorType, rows: int) -> None:
    random = np.random.default_rng(5)
    builder = ModelBuilder("dead")
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", TensorType.FLOAT32, (rows, 64))
    limit = LIMITS[kind]
    integers = random.integers(-limit, limit, (6, 64)).astype(np.int8)
    scales = np.float32([0.05, 0, 0.02, 0.01, 0, 0.03])
    weights = graph.add_tensor("weights", kind, (6, 64), data=integers, scale=scales)
    bias = graph.add_tensor("bias", TensorType.FLOAT32, (6,), data=np.arange(6, dtype=np.float32))
    y = graph.add_tensor("y", TensorType.FLOAT32, (rows, 6))
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator("FULLY_CONNECTED", [x, weights, bias], [y], FullyConnectedOptions())
    values = random.normal(0.2, 1, (rows, 64)).astype(np.float32)
    found = run_op(builder.build().to_bytes(), values, plugins=engine)[0]
    assert_near(found, values @ (integers * scales[:, None]).T + np.arange(6), 0.02)
    assert (found[:, [1, 4]] == [1, 4]).all()


def test_scales_that_do_not_fit_the_blocks_are_refused() -> None:
    model = ModelBuilder("unfit")
    graph = model.add_subgraph()
    x = graph.add_tensor("x", TensorType.FLOAT32, (1, 64))
    scales = graph.add_tensor("scales", TensorType.FLOAT16, (4, 3), data=np.ones((4, 3), np.float16))
    details = BlockwiseQuantization(scales=scales, zero_points=-1, block_size=32)
    quantization = QuantizationParameters(details=details)
    weights = graph.add_tensor("weights", TensorType.INT4, (4, 64), data=np.ones((4, 64), np.int8), quantization=quantization)
    y = graph.add_tensor("y", TensorType.FLOAT32, (1, 4))
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator("FULLY_CONNECTED", [x, weights], [y], FullyConnectedOptions())
    with pytest.raises(OpletError, match="12 scales for blocks of 32; its rows are made of 8 blocks"):
        run_op(model.build().to_bytes(), np.ones((1, 64), np.float32), plugins=["builtin_ops"])
