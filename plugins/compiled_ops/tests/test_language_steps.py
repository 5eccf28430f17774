"""What a language model's step is made of besides layers is compiled, so that its nodes are one call: caches that are written in place,
rows of the table of embeddings, and odml.rms_norm.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from tests.budgets import examples

from oplet import Interpreter, ModelBuilder, TensorType
from oplet.builder import pack_flexbuffer
from oplet.errors import InvokeError
from oplet.schema.options import AddOptions, MulOptions, ReducerOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.schema.tables import BlockwiseQuantization, QuantizationParameters
from oplet_compiled_ops.library.levels import LEVELS
from oplet_compiled_ops.library.opening import chosen_level
from oplet_testing import Spec, invoke, one_op_model
from oplet_testing.graphs import Graph, Op, graph_model

SLOWLY = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
NUMPYS = ["builtin_ops"]


def same_bits(model: bytes, values: list[Any], threads: int = 1) -> list[Any]:
    """Check that the compiled kernels answer as numpy's do, in the first run and when nodes are joined."""
    wanted = invoke(Interpreter(model_content=model, plugins=NUMPYS), *values)
    compiled = Interpreter(model_content=model, num_threads=threads)
    for _ in range(3):
        for one, other in zip(invoke(compiled, *values), wanted, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_array_equal(one, other)
    return wanted


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("source", "target"),
    [*((kind, "float32") for kind in ("bool", "int8", "uint8", "int16", "int32", "int64")),
     ("int32", "int64"), ("int64", "int32"), ("bool", "int32")],
)  # fmt: skip
def test_integers_are_cast_as_numpy_casts_them(source: str, target: str, threads: int) -> None:
    model = one_op_model("CAST", [Spec(source, [3, 7001])], [Spec(target, [3, 7001])], version=7)
    assert is_compiled(model)
    numbers = np.random.default_rng(0).integers(-(2**63), 2**63, (3, 7001)).view(np.uint8)
    x = numbers.reshape(3, -1)[:, : 7001 * np.dtype(source).itemsize].copy().view(np.uint8 if source == "bool" else source)
    same_bits(model, [x > 9 if source == "bool" else x], threads)


@st.composite
def updates(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["float32", "int8", "int64", "int16", "bool", "complex64"]))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(draw(st.integers(0, 6))))
    block = tuple(draw(st.integers(1, length)) for length in shape)
    index = draw(st.sampled_from(["int32", "int64"]))
    starts = np.array([draw(st.integers(-3, 7)) for _ in shape], index)
    values = [random.integers(0, 100, of).astype(kind) for of in (shape, block)]
    inputs = [Spec(kind, shape), Spec(kind, block), Spec(index, starts.shape)]
    return one_op_model("DYNAMIC_UPDATE_SLICE", inputs, [Spec(kind, shape)], version=3), [*values, starts]


@SLOWLY
@given(updates())
def test_a_block_is_written_where_numpy_writes_it(case: tuple[bytes, list[Any]]) -> None:
    same_bits(*case)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(
    ("shape", "block"), [((1, 4, 64, 16), (1, 4, 1, 16)), ((1, 4, 16, 64), (1, 4, 16, 1)), ((3, 1200000), (1, 7))]
)
def test_caches_of_either_layout_are_written_by_a_compiled_kernel(shape: Any, block: Any, index: str) -> None:
    inputs = [Spec("float32", shape), Spec("float32", block), Spec(index, [len(shape)])]
    model = one_op_model("DYNAMIC_UPDATE_SLICE", inputs, [Spec("float32", shape)])
    assert is_compiled(model)
    random = np.random.default_rng(0)
    same_bits(model, [*(random.standard_normal(of, np.float32) for of in (shape, block)), np.full(len(shape), 1, index)])


def test_a_cache_that_nobody_else_reads_is_written_in_place() -> None:
    tensors: dict[str, Any] = {"x": Spec("float32", [2, 64]), "block": Spec("float32", [1, 64]), "at": Spec("int32", [2])}
    ops = [
        Op("ADD", "x x", "doubled", AddOptions()),
        Op("DYNAMIC_UPDATE_SLICE", "doubled block at", "y"),
    ]
    tensors |= {"doubled": tensors["x"], "y": tensors["x"]}
    model = graph_model(Graph(tensors, "x block at", "y", ops))
    assert is_compiled(model)
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    named = {tensor.name: tensor for tensor in interpreter._subgraphs[0].tensors}
    assert named["doubled"].data.ctypes.data == named["y"].data.ctypes.data
    x, block = np.ones((2, 64), np.float32), np.zeros((1, 64), np.float32)
    for _ in range(3):
        [found] = invoke(interpreter, x, block, np.array([1, 0], np.int32))
        np.testing.assert_array_equal(found, np.concatenate([2 * x[:1], block]))


def blocks_of(kind: TensorType) -> bytes:
    """A lookup in a table with a scale for eight values."""
    random = np.random.default_rng(4)
    builder = ModelBuilder("blocks")
    graph = builder.add_subgraph()
    scales = graph.add_tensor("scales", TensorType.FLOAT16, [5, 2], data=random.uniform(0.1, 1, (5, 2)).astype(np.float16))
    details = BlockwiseQuantization(scales=scales, zero_points=-1, block_size=8)
    values = random.integers(-2, 2, (5, 16)).astype(np.int8)
    table = graph.add_tensor("table", kind, [5, 16], data=values, quantization=QuantizationParameters(details=details))
    rows, result = graph.add_tensor("rows", TensorType.INT32, [3]), graph.add_tensor("result", TensorType.FLOAT32, [3, 16])
    graph.set_inputs(rows)
    graph.set_outputs(result)
    graph.add_operator("EMBEDDING_LOOKUP", [rows, table], [result])
    return bytes(builder.to_bytes())


def tables() -> dict[str, bytes]:
    found: dict[str, bytes] = {"int4 blocks": blocks_of(TensorType.INT4), "int8 blocks": blocks_of(TensorType.INT8)}
    random = np.random.default_rng(1)
    for kind in ("float32", "int8", "bool"):
        values = random.integers(-100, 100, (5, 2, 6)).astype(kind)
        found[kind] = one_op_model("EMBEDDING_LOOKUP", [Spec("int32", [3]), values], [Spec(kind, [3, 2, 6])], version=3)
    for kind in (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2):
        for scales in ([0.3], random.uniform(0.1, 1, 5).tolist()):
            low, high = {TensorType.UINT8: (0, 256), TensorType.INT4: (-8, 8), TensorType.INT2: (-2, 2)}.get(kind, (-128, 128))
            values = random.integers(low, high, (5, 8)).astype(np.uint8 if kind is TensorType.UINT8 else np.int8)
            table = Spec(kind, (5, 8), scales, [0] * len(scales), data=values)
            model = one_op_model("EMBEDDING_LOOKUP", [Spec("int32", [3]), table], [Spec("float32", [3, 8])], version=3)
            found[f"{kind.name}, {len(scales)} scales"] = model
    return found


@pytest.mark.parametrize("name", tables())
def test_rows_of_tables_are_numpys(name: str) -> None:
    model = tables()[name]
    assert is_compiled(model)
    same_bits(model, [np.array([4, 0, 4], np.int32)])


@pytest.mark.parametrize("name", ["float32", "INT8, 5 scales", "int4 blocks"])
@pytest.mark.parametrize("row", [-1, 5, 2**31 - 1, -(2**31)])
def test_a_row_that_a_table_does_not_have_is_refused_with_numpys_message(name: str, row: int) -> None:
    model, messages = tables()[name], []
    for plugins in (NUMPYS, ["builtin_ops", "compiled_ops"]):
        interpreter = Interpreter(model_content=model, plugins=plugins)
        for _ in range(2):
            invoke(interpreter, np.array([4, 0, 1], np.int32))
            with pytest.raises(InvokeError) as caught:
                invoke(interpreter, np.array([4, row, 1], np.int32))
            messages.append(str(caught.value).partition(" Node number")[0])
    assert len(set(messages)) == 1, messages
    assert f"row {row} " in messages[0]


def norm(shape: tuple[int, ...]) -> bytes:
    """An odml.rms_norm, whose decomposition gives something else."""
    x, weight = Spec("float32", shape), Spec("float32", shape[-1:])
    attributes = np.frombuffer(pack_flexbuffer({"epsilon": 1e-5}), np.uint8)
    options = StableHLOCompositeOptions(name="odml.rms_norm", decomposition_subgraph_index=1, composite_attributes=attributes)
    tensors: dict[str, Any] = {"x": x, "w": weight, "y": x}
    main = Graph(tensors, "x w", "y", [Op("STABLEHLO_COMPOSITE", "x w", "y", options)])
    return graph_model(main, Graph(tensors, "x w", "y", [Op("SUB", "x x", "y")]))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(1,), (7,), (1, 1, 64), (2, 3, 65), (40, 1000)])
def test_rows_are_divided_by_their_root_mean_square(shape: tuple[int, ...], threads: int) -> None:
    model, random = norm(shape), np.random.default_rng(0)
    assert is_compiled(model)
    x, weight = random.standard_normal(shape, np.float32) * 3, random.standard_normal(shape[-1:], np.float32)
    exact = x / np.sqrt(np.square(x.astype(np.float64)).mean(-1, keepdims=True) + 1e-5) * weight
    interpreter = Interpreter(model_content=model, num_threads=threads)
    [numpys] = invoke(Interpreter(model_content=model, plugins=NUMPYS), x, weight)
    for _ in range(3):
        [found] = invoke(interpreter, x, weight)
        np.testing.assert_allclose(found, exact, rtol=1e-6)
        np.testing.assert_allclose(found, numpys, rtol=1e-6)


@pytest.mark.skipif(not LEVELS[chosen_level()].has_masks, reason="XNNPACK's kernels are other ones where there is no AVX-512")
@pytest.mark.parametrize("columns", [1, 15, 16, 17, 31, 32, 47, 64, 100, 576, 1153])
def test_rows_are_those_of_xnnpacks_kernels_bit_for_bit(columns: int) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    shape = 50, columns
    full, one = Spec("float32", shape), Spec("float32", (50, 1))
    tensors = dict.fromkeys(("x", "square", "scaled", "y"), full) | dict.fromkeys(("mean", "added", "root"), one)
    tensors |= {"w": Spec("float32", (columns,)), "axis": Spec("int32", (1,), data=np.array([1], np.int32))}
    tensors["epsilon"] = Spec("float32", (), data=np.float32(1e-5))
    ops = [
        Op("MUL", "x x", "square", MulOptions()),
        Op("MEAN", "square axis", "mean", ReducerOptions(keep_dims=True)),
        Op("ADD", "mean epsilon", "added", AddOptions()),
        Op("RSQRT", "added", "root"),
        Op("MUL", "x root", "scaled", MulOptions()),
        Op("MUL", "scaled w", "y", MulOptions()),
    ]
    parts = litert.Interpreter(model_content=graph_model(Graph(tensors, "x w", "y", ops)))
    random = np.random.default_rng(columns)
    x, weight = random.standard_normal(shape, np.float32) * 3, random.standard_normal(columns, np.float32)
    parts.allocate_tensors()
    for details, value in zip(parts.get_input_details(), (x, weight)):
        parts.set_tensor(details["index"], value)
    parts.invoke()
    [found] = invoke(Interpreter(model_content=norm(shape)), x, weight)
    np.testing.assert_array_equal(found, parts.get_tensor(parts.get_output_details()[0]["index"]))


def test_a_row_of_zeros_and_one_with_nan_are_numpys() -> None:
    x = np.array([[0, 0, 0, 0], [1, np.nan, 2, 3], [np.inf, 1, 1, 1]], np.float32)
    same_bits(norm(x.shape), [x, np.ones(4, np.float32)])


@pytest.mark.skipif(not LEVELS[chosen_level()].byte_products, reason="other kernels read the weights as they are in the file")
@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_signatures_hold_the_packed_weights_of_a_constant_once(weights: str) -> None:
    from benchmarks.language_net import Size, caches, language_model

    size = Size(layers=1, width=256, heads=2, inner=4096, vocabulary=64, context=16)
    interpreter = Interpreter(model_content=language_model(weights, size, (8,)))
    held = {name: np.zeros(shape, np.float32) for name, shape in caches(size).items()}

    def run(key: str, count: int) -> None:
        places = {"input_pos": np.arange(count, dtype=np.int32), "mask": np.zeros((1, 1, count, size.context), np.float32)}
        interpreter.get_signature_runner(key)(tokens=np.ones((1, count), np.int32), **places, **held)

    run("prefill_8", 8)
    tracemalloc.start()
    try:
        run("decode", 1)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < size.parameters / 4  # packed they take at least half a byte each


def test_a_language_models_step_is_one_call() -> None:
    from benchmarks.language_net import Size, caches, language_model

    size = Size(layers=1, width=32, heads=2, inner=64, vocabulary=50, context=16)
    interpreter = Interpreter(model_content=language_model("int8", size, ()))
    runner = interpreter.get_signature_runner("decode")
    inputs = {name: np.zeros(shape, np.float32) for name, shape in caches(size).items()}
    inputs |= {"tokens": np.array([[7]], np.int32), "input_pos": np.array([3], np.int32)}
    inputs["mask"] = np.zeros((1, 1, 1, size.context), np.float32)
    for _ in range(3):
        runner(**inputs)
    assert interpreter._subgraphs[runner.subgraph_index].is_joined
