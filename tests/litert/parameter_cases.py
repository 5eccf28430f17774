"""Nodes whose parameters arrive in tensors, and models in which these are inputs of unknown length or come from other nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from oplet.builder import ModelBuilder, TensorType
from oplet.schema import options, stablehlo_options
from oplet.schema.enums import MirrorPadMode, Padding

Array = np.ndarray[Any, Any]

#: How a parameter arrives: an input of which nothing but the rank is known, of which the first dimension is not known, one that
#: is taken for a vector, one of unknown rank, one whose shape is right; what a node makes, with and without its shape declared.
#: "data": it is a constant, and the other inputs have unknown dimensions.
FORMS = ("free", "first", "vector", "rankless", "exact", "made", "made as declared", "data")


class Case(NamedTuple):
    """A node.

    Attributes:
        op: its operator.
        inputs: what it is fed.
        parameters: the positions of those that say how.
        outputs: the types of its outputs.
        options: its options.
    """

    op: str
    inputs: list[Array]
    parameters: tuple[int, ...]
    outputs: tuple[str, ...] = ("float32",)
    options: Any = None


def values(*shape: int, dtype: Any = np.float32) -> Array:
    """Small numbers of both signs."""
    return (np.arange(int(np.prod(shape))) % 7 - 2).reshape(shape).astype(dtype)


def ints(*numbers: Any, dtype: Any = np.int32) -> Array:
    """A vector."""
    return np.array(numbers, dtype)


def one(number: float, dtype: Any = np.int32) -> Array:
    """A scalar."""
    return np.array(number, dtype)


X = values(2, 4, 3)
PADS = np.array([[0, 1], [1, 0], [2, 1]], np.int32)
PAIRS = np.array([[0, 0], [1, 1]], np.int32)
IMAGE = values(1, 4, 3, 2)
FLOAT = np.float32
_o, _s = options, stablehlo_options
CASES = {
    "slice": Case("SLICE", [X, ints(0, 1, 0), ints(2, 2, -1)], (1, 2)),
    "slice of int64": Case("SLICE", [X, ints(0, 1, 0, dtype=np.int64), ints(2, 2, -1, dtype=np.int64)], (1, 2)),
    "strided_slice": Case(
        "STRIDED_SLICE", [X, ints(0, 0, 0), ints(2, 3, 2), ints(1, 2, 1)], (1, 2, 3), options=_o.StridedSliceOptions()
    ),
    "strided_slice with masks": Case(
        "STRIDED_SLICE", [X, ints(0, 0, 0), ints(2, 3, 2), ints(1, 2, 1)], (1, 2, 3),
        options=_o.StridedSliceOptions(begin_mask=1, end_mask=2, shrink_axis_mask=4),
    ),
    "pad": Case("PAD", [X, PADS], (1,), options=_o.PadOptions()),
    "pad of int64": Case("PAD", [X, PADS.astype(np.int64)], (1,), options=_o.PadOptions()),
    "padv2": Case("PADV2", [X, PADS, one(3, FLOAT)], (1, 2), options=_o.PadV2Options()),
    "mirror_pad": Case("MIRROR_PAD", [X, PADS], (1,), options=_o.MirrorPadOptions(mode=MirrorPadMode.REFLECT)),
    "tile": Case("TILE", [X, ints(1, 2, 2)], (1,), options=_o.TileOptions()),
    "tile of int64": Case("TILE", [X, ints(1, 2, 2, dtype=np.int64)], (1,), options=_o.TileOptions()),
    "transpose": Case("TRANSPOSE", [X, ints(2, 0, 1)], (1,), options=_o.TransposeOptions()),
    "broadcast_to": Case("BROADCAST_TO", [values(1, 3), ints(2, 4, 3)], (1,), options=_o.BroadcastToOptions()),
    "fill": Case("FILL", [ints(2, 3), one(5, FLOAT)], (0, 1), options=_o.FillOptions()),
    "range": Case("RANGE", [one(1), one(9), one(3)], (0, 1, 2), ("int32",), _o.RangeOptions()),
    "sum": Case("SUM", [X, ints(0, -1)], (1,), options=_o.ReducerOptions()),
    "mean": Case("MEAN", [X, ints(0, -1)], (1,), options=_o.ReducerOptions()),
    "mean of maps": Case("MEAN", [IMAGE, ints(1, 2)], (1,), options=_o.ReducerOptions(keep_dims=True)),
    "reduce_max": Case("REDUCE_MAX", [X, ints(0)], (1,), options=_o.ReducerOptions(keep_dims=True)),
    "reduce_prod": Case("REDUCE_PROD", [X, one(1)], (1,), options=_o.ReducerOptions()),
    "reduce_any": Case("REDUCE_ANY", [X > 0, ints(0, 1)], (1,), ("bool",), _o.ReducerOptions()),
    "expand_dims": Case("EXPAND_DIMS", [X, ints(1)], (1,), options=_o.ExpandDimsOptions()),
    "gather": Case("GATHER", [X, ints(2, 0)], (1,), options=_o.GatherOptions(axis=1)),
    "gather_nd": Case("GATHER_ND", [X, np.array([[0, 1], [1, 2]], np.int32)], (1,), options=_o.GatherNdOptions()),
    "topk_v2": Case("TOPK_V2", [X, one(2)], (1,), ("float32", "int32"), _o.TopKV2Options()),
    "one_hot": Case("ONE_HOT", [ints(1, 0, 2), one(4), one(1, FLOAT), one(0, FLOAT)], (0, 1, 2, 3), options=_o.OneHotOptions(axis=-1)),
    "split": Case("SPLIT", [one(1), X], (0,), ("float32",) * 2, _o.SplitOptions(num_splits=2)),
    "split_v": Case("SPLIT_V", [X, ints(1, -1), one(1)], (1, 2), ("float32",) * 2, _o.SplitVOptions(num_splits=2)),
    "resize_bilinear": Case("RESIZE_BILINEAR", [IMAGE, ints(6, 5)], (1,), options=_o.ResizeBilinearOptions()),
    "resize_nearest": Case("RESIZE_NEAREST_NEIGHBOR", [IMAGE, ints(6, 5)], (1,), options=_o.ResizeNearestNeighborOptions()),
    "space_to_batch_nd": Case(
        "SPACE_TO_BATCH_ND", [values(1, 4, 2, 1), ints(2, 2), PAIRS], (1, 2), options=_o.SpaceToBatchNDOptions()
    ),
    "batch_to_space_nd": Case(
        "BATCH_TO_SPACE_ND", [values(4, 2, 2, 1), ints(2, 2), PAIRS], (1, 2), options=_o.BatchToSpaceNDOptions()
    ),
    "reverse_v2": Case("REVERSE_V2", [X, ints(0, 1)], (1,), options=_o.ReverseV2Options()),
    "reverse_sequence": Case("REVERSE_SEQUENCE", [X, ints(3, 2)], (1,), options=_o.ReverseSequenceOptions(seq_dim=1)),
    "cumsum": Case("CUMSUM", [X, one(1)], (1,), options=_o.CumsumOptions()),
    "arg_max": Case("ARG_MAX", [X, one(1)], (1,), ("int32",), _o.ArgMaxOptions(output_type=TensorType.INT32)),
    "arg_min": Case("ARG_MIN", [X, ints(2)], (1,), ("int32",), _o.ArgMinOptions(output_type=TensorType.INT32)),
    "scatter_nd": Case(
        "SCATTER_ND", [np.array([[1], [3]], np.int32), values(2, 3), ints(4, 3)], (0, 2), options=_o.ScatterNdOptions()
    ),
    "sparse_to_dense": Case(
        "SPARSE_TO_DENSE", [np.array([[1, 1], [0, 2]], np.int32), ints(2, 3), ints(2, 3, dtype=FLOAT), one(0, FLOAT)], (0, 1, 2, 3),
        options=_o.SparseToDenseOptions(),
    ),
    "dynamic_update_slice": Case(
        "DYNAMIC_UPDATE_SLICE", [X, values(1, 2, 3), ints(1, 1, 0)], (2,), options=_o.DynamicUpdateSliceOptions()
    ),
    "transpose_conv": Case(
        "TRANSPOSE_CONV", [ints(1, 4, 4, 2), values(2, 3, 3, 1), values(1, 2, 2, 1)], (0,),
        options=_o.TransposeConvOptions(padding=Padding.SAME, stride_w=2, stride_h=2),
    ),
    "conv_3d_transpose": Case(
        "CONV_3D_TRANSPOSE", [ints(1, 2, 2, 2, 2), values(1, 1, 1, 2, 1), values(1, 2, 2, 2, 1)], (0,),
        options=_o.Conv3DOptions(padding=Padding.SAME, stride_d=1, stride_w=1, stride_h=1),
    ),
    "rfft2d": Case("RFFT2D", [values(1, 4, 4), ints(4, 4)], (1,), ("complex64",), _o.Rfft2dOptions()),
    "segment_sum": Case("SEGMENT_SUM", [values(4, 3), ints(0, 0, 1, 2)], (1,), options=_o.SegmentSumOptions()),
    "unsorted_segment_sum": Case(
        "UNSORTED_SEGMENT_SUM", [values(4, 3), ints(0, 2, 1, 2), one(3)], (1, 2), options=_o.UnsortedSegmentSumOptions()
    ),
    "dilate": Case("DILATE", [values(2, 3), ints(2, 3), one(0, FLOAT)], (1, 2)),
    "broadcast_args": Case("BROADCAST_ARGS", [ints(2, 1, 3), ints(4, 1)], (0, 1), ("int32",)),
    "matrix_diag": Case("MATRIX_DIAG", [values(2, 3)], (0,), options=_o.MatrixDiagOptions()),
    "matrix_set_diag": Case("MATRIX_SET_DIAG", [values(2, 3, 3), values(2, 3)], (0, 1), options=_o.MatrixSetDiagOptions()),
    "where": Case("WHERE", [X > 0], (0,), ("int64",), _o.WhereOptions()),
    "unique": Case("UNIQUE", [ints(1, 2, 1, 3)], (0,), ("int32", "int32"), _o.UniqueOptions(idx_out_type=TensorType.INT32)),
    "select": Case(
        "SELECT", [np.array([True, False]), values(2, 3), values(2, 3)], (0,), options=_o.SelectOptions()
    ),
    "embedding_lookup": Case("EMBEDDING_LOOKUP", [ints(1, 0), values(3, 4)], (0,)),
    "stablehlo_dynamic_slice": Case(
        "STABLEHLO_DYNAMIC_SLICE", [X, one(0), one(1), one(1)], (1, 2, 3),
        options=_s.StablehloDynamicSliceOptions(slice_sizes=np.array([1, 2, 2], np.int64)),
    ),
    "stablehlo_dynamic_update_slice": Case("STABLEHLO_DYNAMIC_UPDATE_SLICE", [X, values(1, 2, 3), one(0), one(1), one(0)], (2, 3, 4)),
    "add": Case("ADD", [values(2, 3), values(3)], (0, 1), options=_o.AddOptions()),
    "concatenation": Case("CONCATENATION", [values(2, 3), values(2, 1)], (0, 1), options=_o.ConcatenationOptions(axis=1)),
    "batch_matmul": Case("BATCH_MATMUL", [values(2, 2, 3), values(2, 3, 4)], (0, 1), options=_o.BatchMatMulOptions()),
}  # fmt: skip


class ParameterModel(NamedTuple):
    """A model of one case.

    Attributes:
        case: its name in CASES.
        parameters: the positions of the inputs that arrive in `form`.
        form: one of FORMS.
        content: the model.
        feeds: what to feed its inputs, by name.
    """

    case: str
    parameters: tuple[int, ...]
    form: str
    content: bytes
    feeds: dict[str, Array]


def models(name: str) -> Iterator[ParameterModel]:
    """All parameters of a case in each form, and each of them alone."""
    case = CASES[name]
    subsets = [case.parameters, *((p,) for p in case.parameters if len(case.parameters) > 1)]
    for subset in subsets:
        for form in FORMS:
            if form != "data" or subset is subsets[0]:
                yield model(name, subset, form)


def model(name: str, subset: tuple[int, ...], form: str) -> ParameterModel:
    """A model of one case, with some of its inputs in a form."""
    case = CASES[name]
    builder = ModelBuilder(minimum_runtime=False)
    graph = builder.add_subgraph()
    inputs: dict[str, int] = {}
    feeds: dict[str, Array] = {}
    operands = []

    def ask(label: str, value: Array, shape: list[int] | None) -> int:
        inputs[label], feeds[label] = graph.add_tensor(label, value.dtype, shape), value
        return inputs[label]

    for position, value in enumerate(case.inputs):
        label, free, shape = f"x{position}", [-1] * value.ndim, list(value.shape)
        chosen = position in subset and form != "data"
        if chosen and form.startswith("made"):
            flat = ask(f"{label} flat", value.reshape(-1), [-1])
            wanted = ask(f"{label} shape", np.array(shape, np.int32), [value.ndim])
            operands.append(graph.add_tensor(label, value.dtype, free if form == "made" else shape))
            graph.add_operator("RESHAPE", [flat, wanted], [operands[-1]])
        elif chosen:
            first = [-1, *shape[1:]] if shape else []
            shapes = {"free": free, "first": first, "vector": [-1], "rankless": None, "exact": shape}
            operands.append(ask(label, value, shapes[form]))
        elif position in case.parameters:
            operands.append(graph.add_tensor(label, value.dtype, shape, data=value))
        else:
            operands.append(ask(label, value, free if form == "data" else shape))
    outputs = {f"y{number}": graph.add_tensor(f"y{number}", kind, [-1]) for number, kind in enumerate(case.outputs)}
    graph.add_operator(case.op, operands, list(outputs.values()), case.options)
    graph.set_inputs(*inputs.values())
    graph.set_outputs(*outputs.values())
    builder.add_signature("serve", inputs, outputs)
    return ParameterModel(name, subset, form, builder.to_bytes(), feeds)


def answers(interpreter: Any, case: ParameterModel) -> dict[str, Any]:
    """What an interpreter class makes of a model: whether it allocates as the model declares it, and what it answers.

    "resized": allocated, resized to what is fed, allocated again, and run; twice in a row. "signature": by its names. A refusal is
    a string.
    """
    found: dict[str, Any] = {"allocated": "it was refused when it was opened"}

    def resized() -> list[Array]:
        runner = interpreter(model_content=case.content)
        details = runner.get_input_details()
        try:
            runner.allocate_tensors()
            found["allocated"] = ""
        except Exception as error:
            found["allocated"] = str(error)
        for _ in range(2):
            for detail in details:
                runner.resize_tensor_input(detail["index"], case.feeds[detail["name"]].shape)
            runner.allocate_tensors()
            for detail in details:
                runner.set_tensor(detail["index"], case.feeds[detail["name"]])
            runner.invoke()
        return [np.asarray(runner.get_tensor(detail["index"])) for detail in runner.get_output_details()]

    def by_name() -> list[Array]:
        made = interpreter(model_content=case.content).get_signature_runner()(**case.feeds)
        return [np.asarray(made[name]) for name in sorted(made)]

    for name, run in (("resized", resized), ("signature", by_name)):
        try:
            found[name] = run()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found
