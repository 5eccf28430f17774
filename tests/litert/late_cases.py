"""Models whose values or sizes a node cannot run with: as they are until a resize, and in a branch that is not taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from tests.litert.parameter_cases import CASES, Array, Case, ints, one, values

from oplet.builder import ModelBuilder, TensorType
from oplet.schema import options as _o
from oplet.schema import stablehlo_options as _s
from oplet.schema.enums import CombinerType, MirrorPadMode, Padding

IMAGE, VOLUME = values(1, 5, 6, 2), values(1, 4, 4, 4, 2)
INPUT: Array = np.array([[1, 0], [2, 1]], np.int32)


def _windows(options: Any, *filters: Array) -> Case:
    return Case({_o.Conv2DOptions: "CONV_2D", _o.DepthwiseConv2DOptions: "DEPTHWISE_CONV_2D"}[type(options)], [IMAGE, *filters], tuple(range(1, 1 + len(filters))), options=options)  # fmt: skip


def _pool(**given: Any) -> Any:
    return _o.Pool2DOptions(padding=Padding.VALID, **given)


#: More nodes, whose windows, rows or tables may be larger than what there is, or smaller.
MORE = {
    **{
        f"{op.lower()} {height}x{width}/{stride}": Case(
            op, [IMAGE], (), options=_pool(filter_height=height, filter_width=width, stride_h=stride, stride_w=stride)
        )
        for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
        for height, width, stride in ((2, 3, 1), (3, 2, 2), (5, 5, 1), (5, 4, 3))
    },
    **{
        f"conv_2d {size}/{stride} of {dilation}": _windows(
            _o.Conv2DOptions(padding=Padding.VALID, stride_h=stride, stride_w=stride, dilation_h_factor=dilation, dilation_w_factor=dilation),
            values(3, size, size, 2), values(3),
        )
        for size, stride, dilation in ((2, 1, 1), (3, 2, 1), (5, 1, 1), (2, 1, 3), (5, 3, 1))
    },
    **{
        f"depthwise_conv_2d {size}/{stride} of {dilation}": _windows(
            _o.DepthwiseConv2DOptions(
                padding=Padding.VALID, stride_h=stride, stride_w=stride, dilation_h_factor=dilation, dilation_w_factor=dilation, depth_multiplier=1
            ),
            values(1, size, size, 2), values(2),
        )
        for size, stride, dilation in ((2, 1, 1), (3, 2, 1), (5, 1, 1), (2, 1, 3))
    },
    "conv_3d": Case(
        "CONV_3D", [VOLUME, values(3, 2, 3, 2, 2)], (1,), options=_o.Conv3DOptions(padding=Padding.VALID, stride_d=1, stride_h=1, stride_w=1)
    ),
    "conv_2d same": _windows(_o.Conv2DOptions(padding=Padding.SAME, stride_h=2, stride_w=2), values(3, 3, 3, 2), values(3)),
    "resize_bilinear corners": Case("RESIZE_BILINEAR", [IMAGE, ints(6, 5)], (1,), options=_o.ResizeBilinearOptions(align_corners=True)),
    "strided_slice shrink": Case(
        "STRIDED_SLICE", [values(2, 4, 3), ints(0, 2), ints(2, 3), ints(1, 1)], (1, 2, 3),
        options=_o.StridedSliceOptions(begin_mask=1, end_mask=1, shrink_axis_mask=2),
    ),
    "strided_slice shrink and part": Case(
        "STRIDED_SLICE", [values(2, 4, 3), ints(1, 2, 1), ints(2, 3, 3), ints(1, 1, 1)], (1, 2, 3), options=_o.StridedSliceOptions(shrink_axis_mask=3),
    ),
    "strided_slice ellipsis": Case(
        "STRIDED_SLICE", [values(2, 4, 3), ints(1, 0, 1), ints(2, 0, 2), ints(1, 1, 1)], (1, 2, 3),
        options=_o.StridedSliceOptions(ellipsis_mask=2, shrink_axis_mask=5),
    ),
    "strided_slice last": Case(
        "STRIDED_SLICE", [values(2, 4, 3), ints(-2, -4), ints(-1, -3), ints(1, 1)], (1, 2, 3), options=_o.StridedSliceOptions(shrink_axis_mask=3),
    ),
    "strided_slice offset": Case(
        "STRIDED_SLICE", [values(2, 4, 3), ints(0, 1, 1), ints(1, 2, 2), ints(1, 1, 1)], (1, 2, 3), options=_o.StridedSliceOptions(offset=True),
    ),
    "gather rows": Case("GATHER", [values(4, 3), ints(3, 1)], (1,), options=_o.GatherOptions(axis=0)),
    "gather one": Case("GATHER", [values(4, 3), one(2)], (1,), options=_o.GatherOptions(axis=0)),
    "gather in batches": Case(
        "GATHER", [values(2, 4, 3), np.array([[1, 2], [3, 0]], np.int32)], (1,), options=_o.GatherOptions(axis=1, batch_dims=1)
    ),
    "gather constants": Case("GATHER", [ints(1, 2, 3), values(4, 3)], (1,)),
    "gather_nd of pairs": Case("GATHER_ND", [values(3, 4), np.array([[[2, 1]], [[0, 3]]], np.int32)], (1,)),
    "scatter_nd updates": Case("SCATTER_ND", [np.array([[2, 1], [0, 3]], np.int32), values(2), ints(3, 4)], (0, 2)),
    "scatter_nd of all": Case("SCATTER_ND", [INPUT, values(2), ints(3, 2)], (0, 1, 2)),
    "reshape": Case("RESHAPE", [values(2, 6), ints(3, -1)], (1,), options=_o.ReshapeOptions(new_shape=np.array([3, -1], np.int32))),
    "reshape by options": Case("RESHAPE", [values(2, 6)], (), options=_o.ReshapeOptions(new_shape=np.array([4, 3], np.int32))),
    "squeeze": Case("SQUEEZE", [values(2, 1, 3)], (), options=_o.SqueezeOptions(squeeze_dims=np.array([1], np.int32))),
    "unpack": Case("UNPACK", [values(3, 2)], (), ("float32",) * 3, _o.UnpackOptions(num=3, axis=0)),
    "pack": Case("PACK", [values(3, 2), values(3, 2)], (1,), options=_o.PackOptions(values_count=2, axis=0)),
    "space_to_depth": Case("SPACE_TO_DEPTH", [values(1, 4, 6, 2)], (), options=_o.SpaceToDepthOptions(block_size=2)),
    "depth_to_space": Case("DEPTH_TO_SPACE", [values(1, 2, 3, 8)], (), options=_o.DepthToSpaceOptions(block_size=2)),
    "mirror_pad symmetric": Case(
        "MIRROR_PAD", [values(3, 4), np.array([[2, 3], [1, 4]], np.int32)], (1,), options=_o.MirrorPadOptions(mode=MirrorPadMode.SYMMETRIC)
    ),
    "topk_v2 of more": Case("TOPK_V2", [values(2, 5), one(4)], (1,), ("float32", "int32"), _o.TopKV2Options()),
    "split in three": Case("SPLIT", [one(1), values(2, 6)], (0,), ("float32",) * 3, _o.SplitOptions(num_splits=3)),
    "split_v in three": Case("SPLIT_V", [values(2, 6), ints(1, 2, 3), one(1)], (1, 2), ("float32",) * 3, _o.SplitVOptions(num_splits=3)),
    "reverse_sequence of batches": Case(
        "REVERSE_SEQUENCE", [values(4, 3, 2), ints(2, 4, 1)], (1,), options=_o.ReverseSequenceOptions(seq_dim=0, batch_dim=1)
    ),
    "embedding_lookup of constants": Case("EMBEDDING_LOOKUP", [ints(3, 0, 2), values(4, 2)], (1,)),
    "embedding_lookup of ids": Case("EMBEDDING_LOOKUP", [ints(2, 0), values(4, 2)], (0,)),
    "embedding_lookup_sparse": Case(
        "EMBEDDING_LOOKUP_SPARSE", [ints(1, 3, 0), np.array([[0, 0], [2, 0], [2, 1]], np.int32), ints(3, 2), values(3), values(4, 2)], (0, 1, 2, 3),
        options=_o.EmbeddingLookupSparseOptions(combiner=CombinerType.SUM),
    ),
    "hashtable_lookup": Case("HASHTABLE_LOOKUP", [ints(5, 1, 4), ints(0, 1, 5), values(3, 2)], (1, 2), ("float32", "uint8")),
    "segment_sum of two": Case("SEGMENT_SUM", [values(3, 2), ints(0, 2, 2)], (1,)),
    **{
        f"{op.lower()} of pairs": Case(op, [values(4, 3), ints(0, 2, 2, 1), one(4)], (1, 2))
        for op in ("UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_SUM")
    },
    "fully_connected": Case("FULLY_CONNECTED", [values(2, 4), values(3, 4), values(3)], (1, 2), options=_o.FullyConnectedOptions()),
    "fully_connected keeping": Case(
        "FULLY_CONNECTED", [values(2, 3, 4), values(3, 4)], (1,), options=_o.FullyConnectedOptions(keep_num_dims=True)
    ),
    "batch_matmul of weights": Case("BATCH_MATMUL", [values(2, 3), values(3, 4)], (1,), options=_o.BatchMatMulOptions()),
    "concatenation of a constant": Case("CONCATENATION", [values(2, 3), values(2, 1)], (1,), options=_o.ConcatenationOptions(axis=1)),
    "add of a constant": Case("ADD", [values(2, 3), values(2, 3)], (1,), options=_o.AddOptions()),
    "maximum of a constant": Case("MAXIMUM", [values(4, 3), values(4, 3)], (1,)),
    "select_v2": Case("SELECT_V2", [np.array([[True], [False]]), values(2, 3), values(2, 3)], (1, 2)),
    "select of rows": Case("SELECT", [np.array([True, False]), values(2, 3), values(2, 3)], (1, 2), options=_o.SelectOptions()),
    "prelu": Case("PRELU", [IMAGE, values(5, 6, 2)], (1,)),
    "cumsum of two": Case("CUMSUM", [values(3, 4), one(-1)], (1,), options=_o.CumsumOptions()),
    "softmax": Case("SOFTMAX", [values(2, 3)], (), options=_o.SoftmaxOptions(beta=1.0)),
    "arg_max of rows": Case("ARG_MAX", [values(3, 4), one(0)], (1,), ("int64",), _o.ArgMaxOptions(output_type=TensorType.INT64)),
    "matrix_set_diag of constants": Case("MATRIX_SET_DIAG", [values(2, 3, 3), values(2, 3)], (1,)),
    "dynamic_update_slice of constants": Case("DYNAMIC_UPDATE_SLICE", [values(4, 3), values(2, 2), ints(1, 0)], (1, 2)),
    "rfft2d of more": Case("RFFT2D", [values(1, 8, 8), ints(8, 4)], (1,), ("complex64",), _o.Rfft2dOptions()),
    "bucketize": Case("BUCKETIZE", [values(2, 3)], (), ("int32",), _o.BucketizeOptions(boundaries=np.array([0, 2], np.float32))),
    "lstm rows": Case("TRANSPOSE", [values(2, 3), ints(1, 0)], (1,)),
    "transpose_conv of constants": Case(
        "TRANSPOSE_CONV", [ints(1, 6, 6, 2), values(2, 3, 3, 1), values(1, 2, 2, 1)], (0, 1),
        options=_o.TransposeConvOptions(padding=Padding.VALID, stride_w=2, stride_h=2),
    ),
    "non_max_suppression": Case(
        "NON_MAX_SUPPRESSION_V4", [np.abs(values(3, 4)), np.abs(values(3)), one(2), one(0.5, np.float32), one(0.0, np.float32)], (2, 3, 4), ("int32", "int32"),
    ),
    "stablehlo_gather": Case(
        "STABLEHLO_GATHER", [values(4, 3), np.array([[3], [1]], np.int32)], (1,),
        options=_s.StablehloGatherOptions(
            offset_dims=np.array([1], np.int64), collapsed_slice_dims=np.array([0], np.int64), start_index_map=np.array([0], np.int64),
            index_vector_dim=1, slice_sizes=np.array([1, 3], np.int64),
        ),
    ),
    "stablehlo_slice": Case(
        "STABLEHLO_SLICE", [values(4, 3)], (),
        options=_s.StablehloSliceOptions(
            start_indices=np.array([1, 0], np.int64), limit_indices=np.array([4, 2], np.int64), strides=np.array([1, 1], np.int64)
        ),
    ),
    "stablehlo_concatenate": Case("STABLEHLO_CONCATENATE", [values(2, 3), values(2, 1)], (1,), options=_s.StablehloConcatenateOptions(dimension=1)),
    "stablehlo_pad": Case(
        "STABLEHLO_PAD", [values(3, 4), one(0, np.float32)], (1,),
        options=_s.StablehloPadOptions(
            edge_padding_low=np.array([-2, 0], np.int64), edge_padding_high=np.array([0, -1], np.int64), interior_padding=np.array([0, 0], np.int64)
        ),
    ),
}  # fmt: skip

ALL = {**CASES, **MORE}
#: What is added to each value of a parameter in turn.
_OFF = (-9, 1, 9)


class LateModel(NamedTuple):
    """A model of one case.

    Attributes:
        what: how it is made, "slice, x0 of [1, 1, 1]".
        content: the model.
        feeds: what to feed its inputs, in the order of `get_input_details`, as they are without a resize.
        grown: the same with shapes that the node can run with, all of them resized; None where there is no such thing.
    """

    what: str
    content: bytes
    feeds: list[Array]
    grown: list[Array] | None


def late_models(name: str) -> Iterator[LateModel]:
    """A case's models: with every other shape until the resize, with wrong constants, and with these in a branch that is not taken."""
    case = ALL[name]
    fed = [position for position in range(len(case.inputs)) if position not in case.parameters]
    for what, shapes in _small_shapes(case, fed):
        yield LateModel(
            f"{name}, {what}", _plain(case, shapes), [_cut(case.inputs[p], shapes[p]) for p in fed], [case.inputs[p] for p in fed]
        )
        yield LateModel(
            f"{name}, {what}, not taken",
            _branches(case, shapes),
            [np.array(False), *(_cut(case.inputs[p], shapes[p]) for p in fed)],
            None,
        )
    shapes = {position: case.inputs[position].shape for position in fed}
    for what, wrong in _wrong(case):
        yield LateModel(f"{name}, {what}", _plain(wrong, shapes), [case.inputs[p] for p in fed], None)
        yield LateModel(
            f"{name}, {what}, not taken", _branches(wrong, shapes), [np.array(False), *(case.inputs[p] for p in fed)], None
        )


def _small_shapes(case: Case, fed: list[int]) -> Iterator[tuple[str, dict[int, tuple[int, ...]]]]:
    whole = {position: case.inputs[position].shape for position in fed}
    seen: list[dict[int, tuple[int, ...]]] = [whole]
    for size in (1, 0):
        forms = [{p: (size,) * len(shape) for p, shape in whole.items()}]
        for axis in range(max((len(shape) for shape in whole.values()), default=0)):
            forms.append({p: tuple(size if i == axis else d for i, d in enumerate(shape)) for p, shape in whole.items()})
        for form in forms:
            if form not in seen:
                seen.append(form)
                yield f"inputs of {', '.join(str(list(shape)) for shape in form.values())}", form


def _wrong(case: Case) -> Iterator[tuple[str, Case]]:
    for position in case.parameters:
        value = case.inputs[position]
        if value.dtype.kind != "i" or value.size > 6:
            continue
        for place in range(value.size):
            for off in _OFF:
                changed = value.copy()
                changed.reshape(-1)[place] += off
                inputs = [changed if i == position else each for i, each in enumerate(case.inputs)]
                yield f"input {position} {changed.tolist()}", case._replace(inputs=inputs)


def _cut(value: Array, shape: tuple[int, ...]) -> Array:
    return np.resize(value, shape).astype(value.dtype)


def _node(graph: Any, case: Case, shapes: dict[int, tuple[int, ...]], free: bool) -> tuple[list[int], list[int]]:
    """Add the node; return its fed inputs and its outputs."""
    inputs, operands = [], []
    for position, value in enumerate(case.inputs):
        if position in shapes:
            shape = shapes[position]
            signature = [-1] * len(shape) if free else None
            inputs.append(graph.add_tensor(f"x{position}", value.dtype, shape, shape_signature=signature))
            operands.append(inputs[-1])
        else:
            operands.append(graph.add_tensor(f"x{position}", value.dtype, value.shape, data=value))
    outputs = [graph.add_tensor(f"y{number}", kind, [1]) for number, kind in enumerate(case.outputs)]
    graph.add_operator(case.op, operands, outputs, case.options)
    return inputs, outputs


def _plain(case: Case, shapes: dict[int, tuple[int, ...]]) -> bytes:
    builder = ModelBuilder(minimum_runtime=False)
    graph = builder.add_subgraph()
    inputs, outputs = _node(graph, case, shapes, True)
    graph.set_inputs(*inputs)
    graph.set_outputs(*outputs)
    return builder.to_bytes()


def _branches(case: Case, shapes: dict[int, tuple[int, ...]]) -> bytes:
    """IF with the node in its first branch, and constants in the other one."""
    builder = ModelBuilder(minimum_runtime=False)
    main, then, otherwise = (builder.add_subgraph(name) for name in ("main", "then", "otherwise"))
    condition = main.add_tensor("condition", "bool", [])
    inputs = [main.add_tensor(f"x{p}", case.inputs[p].dtype, shape) for p, shape in shapes.items()]
    outputs = [main.add_tensor(f"y{number}", kind, [2]) for number, kind in enumerate(case.outputs)]
    main.add_operator("IF", [condition, *inputs], outputs, _o.IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    main.set_inputs(condition, *inputs)
    main.set_outputs(*outputs)
    given, made = _node(then, case, shapes, False)
    then.set_inputs(*given)
    then.set_outputs(*made)
    given = [otherwise.add_tensor(f"x{p}", case.inputs[p].dtype, shape) for p, shape in shapes.items()]
    otherwise.set_inputs(*given)
    otherwise.set_outputs(
        *(otherwise.add_tensor(f"k{n}", kind, [2], data=np.array([3, 1]).astype(kind)) for n, kind in enumerate(case.outputs))
    )
    return builder.to_bytes()


def answers(interpreter: Any, case: LateModel) -> Iterator[Any]:
    """What an interpreter class makes of a model as it is, a list of arrays each or a refusal: of `allocate_tensors`, and then of a run."""
    try:
        runner = interpreter(model_content=case.content)
        runner.allocate_tensors()
    except Exception as error:
        yield refusal(error)
        return
    yield []
    yield _run(runner, case.feeds)


def resized(interpreter: Any, case: LateModel) -> Any:
    """What an interpreter class makes of a model after a resize to shapes that its node can run with; None where there is no such thing."""
    if case.grown is None:
        return None
    try:
        runner = interpreter(model_content=case.content)
        with suppress(Exception):
            runner.allocate_tensors()
        for detail, value in zip(runner.get_input_details(), case.grown):
            runner.resize_tensor_input(detail["index"], value.shape)
        runner.allocate_tensors()
    except Exception as error:
        return refusal(error)
    return _run(runner, case.grown)


def refusal(error: BaseException) -> str:
    """An error in words."""
    return f"{type(error).__name__}: {error}"


def _run(runner: Any, feeds: list[Array]) -> Any:
    try:
        for detail, value in zip(runner.get_input_details(), feeds):
            runner.set_tensor(detail["index"], value)
        runner.invoke()
        return [_read(runner, detail) for detail in runner.get_output_details()]
    except Exception as error:
        return refusal(error)


def _read(runner: Any, detail: dict[str, Any]) -> Array:
    try:
        return np.asarray(runner.get_tensor(detail["index"]))
    except ValueError as error:
        # LiteRT gives dynamic tensors without elements no memory, and its Python API cannot read them.
        if "Invalid tensor size" in str(error) and not np.prod(detail["shape"]):
            return np.empty(detail["shape"], detail["dtype"])
        raise
