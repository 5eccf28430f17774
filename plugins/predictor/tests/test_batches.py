"""Whole batches: the rules say that rows stay apart only where they do, and what is run in batches has the bits of single rows."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.kinds import part
from tests.places import REAL
from tests.recorded_cases import here

from oplet import Interpreter, Predictor, TensorType
from oplet.errors import OpletError
from oplet.schema import options as o
from oplet.schema.enums import BuiltinOperator, Padding
from oplet_predictor.batch_decision import mixing, rounding
from oplet_predictor.batch_rules import RULES
from oplet_predictor.opened_model import OpenedModel, fresh_opened
from oplet_testing import Graph, Op, Spec, graph_model, one_op_model

pytest.importorskip("oplet_builtin_ops")

F32, I32, I8 = np.float32, np.int32, np.int8
ROWS = 3


def x(*shape: int, dtype: Any = F32, **more: Any) -> Spec:
    """A tensor with a free first dimension."""
    return Spec(dtype, [1, *shape], signature=[-1, *shape], **more)


def ints(*values: Any) -> Any:
    return np.array(values, I32)


def q(*shape: int) -> Spec:
    return x(*shape, dtype=I8, scale=0.5, zero_point=0)


class Case(NamedTuple):
    """A node, and whether its rows stay apart."""

    apart: bool
    op: str
    inputs: list[Any]
    outputs: list[Spec]
    options: Any = None


W = np.random.default_rng(0).random
CASES = [
    Case(True, "ADD", [x(4), np.ones(4, F32)], [x(4)], o.AddOptions()),
    Case(True, "ADD", [x(4), np.ones((1, 4), F32)], [x(4)], o.AddOptions()),
    Case(True, "ADD", [x(4), x(4)], [x(4)], o.AddOptions()),
    Case(False, "ADD", [x(4), np.ones((ROWS, 4), F32)], [Spec(F32, [ROWS, 4])], o.AddOptions()),
    Case(False, "MUL", [x(4), np.arange(ROWS * 4, dtype=F32).reshape(ROWS, 4)], [Spec(F32, [ROWS, 4])], o.MulOptions()),
    Case(False, "MUL", [x(), x(4)], [x(4)], o.MulOptions()),
    Case(False, "MUL", [x(1), np.arange(ROWS, dtype=F32)[:, None]], [Spec(F32, [ROWS, 1])], o.MulOptions()),
    Case(True, "TANH", [x(4)], [x(4)]),
    Case(True, "SELECT_V2", [x(4, dtype=np.bool_), x(4), x(4)], [x(4)], o.SelectV2Options()),
    Case(False, "SELECT", [x(dtype=np.bool_), x(4), x(4)], [x(4)], o.SelectOptions()),
    Case(True, "SOFTMAX", [x(4)], [x(4)], o.SoftmaxOptions(beta=1.0)),
    Case(False, "SOFTMAX", [x()], [x()], o.SoftmaxOptions(beta=1.0)),
    Case(True, "L2_NORMALIZATION", [x(4)], [x(4)], o.L2NormOptions()),
    Case(True, "MEAN", [x(4, 2), ints(1)], [x(2)], o.ReducerOptions()),
    Case(True, "SUM", [x(4, 2), ints(1, -1)], [x(1, 1)], o.ReducerOptions(keep_dims=True)),
    Case(False, "MEAN", [x(4, 2), ints(0)], [Spec(F32, [4, 2])], o.ReducerOptions()),
    Case(False, "SUM", [x(4, 2), ints(0, 1)], [Spec(F32, [1, 1, 2])], o.ReducerOptions(keep_dims=True)),
    Case(False, "REDUCE_MAX", [x(4, 2), ints(-3)], [Spec(F32, [1, 4, 2])], o.ReducerOptions(keep_dims=True)),
    Case(True, "CUMSUM", [x(4), np.array(1, I32)], [x(4)], o.CumsumOptions()),
    Case(False, "CUMSUM", [x(4), np.array(0, I32)], [x(4)], o.CumsumOptions()),
    Case(False, "CUMSUM", [x(4), np.array(-2, I32)], [x(4)], o.CumsumOptions()),
    Case(True, "REVERSE_V2", [x(4), ints(1)], [x(4)], o.ReverseV2Options()),
    Case(False, "REVERSE_V2", [x(4), ints(0)], [x(4)], o.ReverseV2Options()),
    Case(False, "REVERSE_V2", [x(4), ints(-2)], [x(4)], o.ReverseV2Options()),
    Case(True, "REVERSE_SEQUENCE", [x(4), x(dtype=I32)], [x(4)], o.ReverseSequenceOptions(seq_dim=1, batch_dim=0)),
    Case(True, "CONCATENATION", [x(4), x(4)], [x(8)], o.ConcatenationOptions(axis=1)),
    Case(False, "CONCATENATION", [x(4), x(4)], [Spec(F32, [2, 4])], o.ConcatenationOptions(axis=0)),
    Case(False, "CONCATENATION", [x(4), x(4)], [Spec(F32, [2, 4])], o.ConcatenationOptions(axis=-2)),
    Case(True, "PACK", [x(4), x(4)], [x(2, 4)], o.PackOptions(values_count=2, axis=1)),
    Case(True, "PACK", [x(4), x(4)], [x(4, 2)], o.PackOptions(values_count=2, axis=-1)),
    Case(False, "PACK", [x(4), x(4)], [Spec(F32, [2, 1, 4])], o.PackOptions(values_count=2, axis=0)),
    Case(True, "UNPACK", [x(2, 4)], [x(4), x(4)], o.UnpackOptions(num=2, axis=1)),
    Case(True, "SPLIT", [np.array(1, I32), x(4)], [x(2), x(2)], o.SplitOptions(num_splits=2)),
    Case(True, "SPLIT_V", [x(4), ints(1, 3), np.array(-1, I32)], [x(1), x(3)], o.SplitVOptions(num_splits=2)),
    Case(True, "TRANSPOSE", [x(4, 2), ints(0, 2, 1)], [x(2, 4)], o.TransposeOptions()),
    Case(False, "TRANSPOSE", [x(4, 2), ints(1, 0, 2)], [Spec(F32, [4, 1, 2])], o.TransposeOptions()),
    Case(False, "TRANSPOSE", [x(1, 2), ints(1, 0, 2)], [x(1, 2)], o.TransposeOptions()),
    Case(True, "PAD", [x(4), ints([0, 0], [1, 1])], [x(6)], o.PadOptions()),
    Case(False, "PAD", [x(4), ints([1, 0], [0, 0])], [Spec(F32, [2, 4])], o.PadOptions()),
    Case(True, "SLICE", [x(4), ints(0, 1), ints(-1, 2)], [x(2)], o.SliceOptions()),
    Case(False, "SLICE", [x(4), ints(0, 1), ints(1, 2)], [x(2)], o.SliceOptions()),
    Case(True, "STRIDED_SLICE", [x(4), ints(0, 0), ints(0, 3), ints(1, 2)], [x(2)], o.StridedSliceOptions(begin_mask=1, end_mask=1)),
    Case(False, "STRIDED_SLICE", [x(4), ints(0, 0), ints(1, 3), ints(1, 2)], [x(2)], o.StridedSliceOptions()),
    Case(False, "STRIDED_SLICE", [x(4), ints(0, 0), ints(0, 4), ints(-1, 1)], [x(4)], o.StridedSliceOptions(begin_mask=1, end_mask=1)),
    Case(False, "STRIDED_SLICE", [x(4), ints(0, 0), ints(0, 4), ints(1, 1)], [Spec(F32, [4])], o.StridedSliceOptions(end_mask=1, shrink_axis_mask=1)),
    Case(True, "RESHAPE", [x(4, 2), ints(-1, 8)], [x(8)], o.ReshapeOptions()),
    Case(True, "RESHAPE", [x(4, 2), ints(-1, 2)], [Spec(F32, [4, 2])], o.ReshapeOptions()),
    Case(False, "RESHAPE", [x(4, 2), ints(1, -1, 2)], [x(4, 2)], o.ReshapeOptions()),
    Case(False, "RESHAPE", [x(4, 2), ints(2, -1)], [Spec(F32, [2, 4])], o.ReshapeOptions()),
    Case(True, "EXPAND_DIMS", [x(4), np.array(1, I32)], [x(1, 4)], o.ExpandDimsOptions()),
    Case(False, "EXPAND_DIMS", [x(4), np.array(0, I32)], [Spec(F32, [1, 1, 4])], o.ExpandDimsOptions()),
    Case(True, "SQUEEZE", [x(1, 4)], [x(4)], o.SqueezeOptions(squeeze_dims=[1])),
    Case(True, "TILE", [x(4), ints(1, 2)], [x(8)], o.TileOptions()),
    Case(False, "TILE", [x(4), ints(2, 1)], [Spec(F32, [2, 4])], o.TileOptions()),
    Case(True, "FULLY_CONNECTED", [x(4), W((2, 4)).astype(F32), None], [x(2)], o.FullyConnectedOptions()),
    Case(True, "BATCH_MATMUL", [x(3, 4), W((4, 2)).astype(F32)], [x(3, 2)], o.BatchMatMulOptions()),
    Case(True, "BATCH_MATMUL", [x(3, 4), x(4, 2)], [x(3, 2)], o.BatchMatMulOptions()),
    Case(True, "BATCH_MATMUL", [x(4), W((4, 2)).astype(F32)], [x(2)], o.BatchMatMulOptions()),
    Case(False, "BATCH_MATMUL", [x(4), x(2)], [Spec(F32, [4, 2])], o.BatchMatMulOptions(adj_x=True)),
    Case(False, "BATCH_MATMUL", [x(4), x(4)], [Spec(F32, [1, 1])], o.BatchMatMulOptions(adj_y=True)),
    Case(False, "BATCH_MATMUL", [x(1, 4), W((ROWS, 4, 2)).astype(F32)], [Spec(F32, [ROWS, 1, 2])], o.BatchMatMulOptions()),
    Case(True, "GATHER", [x(4), ints(3, 0)], [x(2)], o.GatherOptions(axis=1)),
    Case(True, "GATHER", [W((10, 4)).astype(F32), x(2, dtype=I32)], [x(2, 4)], o.GatherOptions(axis=0)),
    Case(False, "GATHER", [x(4), ints(0)], [x(4)], o.GatherOptions(axis=0)),
    Case(False, "GATHER", [x(4), x(dtype=I32)], [x(4)], o.GatherOptions(axis=0)),
    Case(True, "GATHER_ND", [W((10, 4)).astype(F32), x(1, dtype=I32)], [x(4)], o.GatherNdOptions()),
    Case(True, "ARG_MAX", [x(4), np.array(1, I32)], [x(dtype=I32)], o.ArgMaxOptions(output_type=TensorType.INT32)),
    Case(False, "ARG_MAX", [x(4), np.array(0, I32)], [Spec(I32, [4])], o.ArgMaxOptions(output_type=TensorType.INT32)),
    Case(True, "TOPK_V2", [x(4), np.array(2, I32)], [x(2), x(2, dtype=I32)], o.TopKV2Options()),
    Case(False, "TOPK_V2", [x(), np.array(1, I32)], [x(), x(dtype=I32)], o.TopKV2Options()),
    Case(True, "ONE_HOT", [x(2, dtype=I32), np.array(9, I32), np.array(1, F32), np.array(0, F32)], [x(2, 9)], o.OneHotOptions(axis=-1)),
    Case(False, "ONE_HOT", [x(2, dtype=I32), np.array(9, I32), np.array(1, F32), np.array(0, F32)], [Spec(F32, [9, 1, 2])], o.OneHotOptions(axis=0)),
    Case(True, "MAX_POOL_2D", [x(4, 4, 1)], [x(2, 2, 1)], o.Pool2DOptions(padding=Padding.VALID, stride_w=2, stride_h=2, filter_width=2, filter_height=2)),
    Case(True, "CONV_2D", [x(4, 4, 2), W((3, 2, 2, 2)).astype(F32), np.zeros(3, F32)], [x(3, 3, 3)], o.Conv2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1)),
    Case(True, "DEPTH_TO_SPACE", [x(2, 2, 4)], [x(4, 4, 1)], o.DepthToSpaceOptions(block_size=2)),
    Case(False, "BATCH_TO_SPACE_ND", [Spec(F32, [4, 1, 1, 1], signature=[-1, 1, 1, 1]), ints(2, 2), ints([0, 0], [0, 0])], [x(2, 2, 1)], o.BatchToSpaceNDOptions()),
    Case(True, "QUANTIZE", [x(4)], [q(4)], o.QuantizeOptions()),
    Case(True, "EMBEDDING_LOOKUP", [x(dtype=I32), W((10, 4)).astype(F32)], [x(4)]),
    Case(False, "BROADCAST_TO", [x(1), ints(1, 4)], [x(4)], o.BroadcastToOptions()),
]  # fmt: skip


def opened(model: bytes, rows: int) -> OpenedModel:
    return fresh_opened(Interpreter(model_content=model), None, rows)


def ids(case: Case) -> str:
    return f"{case.op}-{'apart' if case.apart else 'mixes'}"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_rule_says_whether_rows_stay_apart_as_running_them_does(case: Case) -> None:
    model = one_op_model(case.op, case.inputs, case.outputs, case.options, version=VERSIONS.get(case.op, 1))
    one = opened(model, 1)
    try:
        several = opened(model, ROWS)
    except OpletError:
        assert not case.apart
        return
    why = mixing(one, several)
    if case.apart:
        assert not why
    if why:
        return
    random = np.random.default_rng(3)
    for _ in range(3):
        feeds = {}
        for name, column in one.inputs.items():
            shape = (ROWS, *column.shape)
            integers = column.dtype.kind in "iub"
            feeds[name] = random.integers(0, 2 if column.dtype.kind == "b" else 4, shape).astype(column.dtype) if integers else random.random(shape).astype(column.dtype)  # fmt: skip
        together = [np.array(value) for value in several.run(list(feeds.values()))]
        for row in range(ROWS):
            alone = one.run([value[row : row + 1] for value in feeds.values()])
            for a, b in zip(alone, together):
                size = len(a)
                np.testing.assert_allclose(b[row * size : (row + 1) * size], a, rtol=1e-6)


#: Operators whose first version is not 1.
VERSIONS = {"BROADCAST_TO": 2}


def test_the_cases_have_both_kinds_and_most_rules() -> None:
    tried = {BuiltinOperator[case.op] for case in CASES}
    rules = {rule for op, rule in RULES.items() if op in tried}
    left_out = {rule.__name__ for rule in RULES.values() if rule not in rules}
    assert left_out <= {"_transpose_conv"}
    assert sum(not case.apart for case in CASES) > 25


def test_shapes_that_follow_the_batch_are_seen_through() -> None:
    """What converters write: the batch is read from the input's shape, and goes into the target of a reshape."""
    graph = Graph(
        {
            "x": x(2, 2, dtype=I8),
            "shape": Spec(I32, [3]),
            "b0": ints(0),
            "b1": ints(1),
            "batch": Spec(I32, []),
            "four": np.array(4, I32),
            "target": Spec(I32, [2]),
            "y": x(4, dtype=I8),
        },
        "x",
        "y",
        [
            Op("SHAPE", "x", "shape", o.ShapeOptions(out_type=TensorType.INT32)),
            Op("STRIDED_SLICE", "shape b0 b1 b1", "batch", o.StridedSliceOptions(shrink_axis_mask=1)),
            Op("PACK", "batch four", "target", o.PackOptions(values_count=2, axis=0)),
            Op("RESHAPE", "x target", "y", o.ReshapeOptions()),
        ],
    )
    predict = Predictor(graph_model(graph))
    assert "runs batches of 64" in predict.explain()
    rows = np.arange(800, dtype=np.int64).astype(I8).reshape(200, 2, 2)
    np.testing.assert_array_equal(predict(rows)["y"], rows.reshape(200, 4))


def test_a_value_that_depends_on_the_number_of_rows_keeps_them_single() -> None:
    graph = Graph(
        {
            "x": x(4, dtype=I32),
            "shape": Spec(I32, [2]),
            "b0": ints(0),
            "b1": ints(1),
            "batch": Spec(I32, [1]),
            "y": x(4, dtype=I32),
        },
        "x",
        "y",
        [
            Op("SHAPE", "x", "shape", o.ShapeOptions(out_type=TensorType.INT32)),
            Op("STRIDED_SLICE", "shape b0 b1 b1", "batch", o.StridedSliceOptions()),
            Op("MUL", "x batch", "y", o.MulOptions()),
        ],
    )
    predict = Predictor(graph_model(graph), batch=True)
    rows = np.arange(800, dtype=I32).reshape(200, 4)
    np.testing.assert_array_equal(predict(rows)["y"], rows)
    assert "node 2 (MUL) may not keep rows apart: it reads a value that depends on the number of rows" in predict.explain()


def test_batches_are_small_enough_for_the_cache() -> None:
    def told(size: int) -> str:
        return Predictor(one_op_model("FLOOR", [x(size)], [x(size)])).explain()

    assert "batches of 64 rows" in told(10)
    assert "batches of 8 rows" in told(1000)
    assert "one row takes" in told(100_000)


def test_kernels_whose_floats_depend_on_the_batch_are_told() -> None:
    def why(model: bytes) -> str:
        return rounding(opened(model, ROWS))

    assert not why(one_op_model("ADD", [x(4), x(4)], [x(4)], o.AddOptions()))
    assert "node 0 (ADD)" in why(
        one_op_model("ADD", [x(4), x(4)], [x(4)], o.AddOptions(fused_activation_function=o.ActivationFunctionType.TANH))
    )
    assert "node 0 (SOFTMAX)" in why(one_op_model("SOFTMAX", [x(4)], [x(4)], o.SoftmaxOptions(beta=1.0)))


# Real models -------------------------------------------------------------------------------------------------

#: Groups whose cases have the same models as others, or that do not run.
SAME = ("unrunnable", "tflm_seanet_golden")
#: Its node works for minutes on a gigabyte.
HUGE = "conv_huge_im2col"
LARGEST = 3_000_000
#: Bytes of one row of which few are enough.
LARGE_ROW = 100_000


def real_models(small: bool) -> Iterator[tuple[str, bytes]]:
    seen: set[bytes] = set()
    for path in sorted(REAL.glob("*.zip")):
        if path.stem in SAME or (small and path.stem == "tflm_seanet"):
            continue
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                name = info.filename.split("/")[0]
                if not info.filename.endswith("/model.tflite") or name == HUGE or info.file_size > (4_000 if small else LARGEST):
                    continue
                content = archive.read(info)
                if content not in seen and (small or part().holds(name)):
                    seen.add(content)
                    yield name, content


def compare_with_serial_loop(name: str, content: bytes, quick: bool = False) -> set[Any]:
    """Check rows against single runs of plain interpreters; returns which `batch=` led to batches."""
    try:
        plain = fresh_opened(Interpreter(model_content=content), None)
    except OpletError:
        return set()
    nbytes = plain.subgraph.arena_bytes
    if quick and nbytes > LARGE_ROW:
        return set()
    count = 17 if nbytes > LARGE_ROW else 70
    random = np.random.default_rng(5)
    rows = {}
    for column_name, column in plain.inputs.items():
        shape = (count, *(2 if size < 0 else size for size in column.shape))
        if column.dtype == object:
            rows[column_name] = np.full(shape, b"text", object)
        elif column.dtype.kind in "iub":
            quantized = np.any(column.details["quantization_parameters"]["scales"])
            low, high = (np.iinfo(column.dtype).min, np.iinfo(column.dtype).max) if quantized else (0, 2)
            rows[column_name] = random.integers(low, high, shape).astype(column.dtype)
        else:
            rows[column_name] = random.random(shape).astype(column.dtype)
    batched: set[Any] = set()
    alone: list[list[Any]] = []
    for batch in (None, 16):
        predict = Predictor(content, batch=batch)
        try:
            told = predict.explain()
            if "runs batches" not in told:
                few = {key: value[:2] for key, value in rows.items()}
                got = list(predict(few).values())
            else:
                batched.add(batch)
                got = list(predict(rows).values())
        except OpletError:
            return batched
        for row in range(len(got[0])):
            if len(alone) <= row:
                alone.append([np.array(v) for v in plain.run([column.tensor_value(rows[n][row, ...]) for n, column in plain.inputs.items()])])  # fmt: skip
            for place, (value, made) in enumerate(zip(alone[row], got)):
                expected = list(plain.outputs.values())[place].row_of(value)
                if batch is None or "bits are those" in told or "runs row by row" in told:
                    assert np.array_equal(np.asarray(made[row]), expected, equal_nan=expected.dtype.kind in "fc"), (
                        name,
                        batch,
                        row,
                    )
                else:
                    scale = float(np.abs(expected).max()) if expected.size else 0.0
                    np.testing.assert_allclose(made[row], expected, rtol=1e-3, atol=1e-4 * scale, err_msg=name)
    return batched


@here
@pytest.mark.sweep
def test_small_real_models_give_what_a_serial_loop_gives() -> None:
    found = [compare_with_serial_loop(name, content, quick=True) for name, content in real_models(small=True)]
    assert len(found) > 25
    assert sum(None in each for each in found) > 8
    assert sum(16 in each for each in found) > 14


@here
@pytest.mark.sweep(cases=True)
def test_real_models_give_what_a_serial_loop_gives() -> None:
    found = [compare_with_serial_loop(name, content) for name, content in real_models(small=False)]
    assert len(found) > part().least(100)
    assert sum(16 in each for each in found) > part().least(40)
