"""Seed models of several nodes or subgraphs: control flow, resources, sparse weights, StableHLO regions, small nets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzz.seed_ops import bools, f32, i32, ints, longs, q8, q8_weights, q32_bias, weights
from oplet import ModelBuilder
from oplet.model.builders.sparsity import sparsify
from oplet.schema import options as o
from oplet.schema import stablehlo_options as h
from oplet.schema.enums import ActivationFunctionType, TensorType
from oplet.schema.table import Table
from oplet_testing import one_op_model
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

__all__ = ["make"]

_X = f32(3)
_HANDLE = Spec(TensorType.RESOURCE, [])
_WORDS = np.array([b"one", b"two", b""], object)


def make() -> dict[str, bytes]:
    """The models by name."""
    return {**_control_flow(), **_resources(), **_regions(), **_nets()}


def _control_flow() -> dict[str, bytes]:
    negated = Graph({"a": _X, "y": _X}, "a", "y", [Op("NEG", "a", "y")])
    same = Graph({"a": _X}, "a", "a")
    longer = Graph({"a": _X, "y": f32(6), "axis": ints(2)}, "a", "y", [Op("TILE", "a axis", "y")])
    less = Graph({"n": i32(), "a": _X, "most": np.array(3, np.int32), "y": bools()}, "n a", "y", [Op("LESS", "n most", "y")])
    more = Graph(
        {"n": i32(), "a": _X, "one": np.array(1, np.int32), "m": i32(), "b": _X}, "n a", "m b",
        [Op("ADD", "n one", "m", o.AddOptions()), Op("MUL", "a a", "b", o.MulOptions())],
    )  # fmt: skip
    condition = {"c": bools(), "a": _X, "y": _X}
    counter = {"n": i32(), "a": _X, "m": i32(), "b": _X}
    branch = {"i": i32(), "a": _X, "y": _X}
    cases = h.StablehloCaseOptions(branch_subgraph_indices=ints(1, 2))
    composite = h.StableHLOCompositeOptions(name="x", decomposition_subgraph_index=1, composite_attributes=np.zeros(1, np.uint8))
    choice = o.IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    loop = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    return {
        "if": graph_model(Graph(condition, "c a", "y", [Op("IF", "c a", "y", choice)]), negated, same, signatures={"serve": 0}),
        "if_dynamic": graph_model(Graph(condition, "c a", "y", [Op("IF", "c a", "y", choice)]), longer, same),
        "while": graph_model(Graph(counter, "n a", "m b", [Op("WHILE", "n a", "m b", loop)]), less, more),
        "stablehlo_while": graph_model(
            Graph(
                counter,
                "n a",
                "m b",
                [Op("STABLEHLO_WHILE", "n a", "m b", h.StablehloWhileOptions(cond_subgraph_index=1, body_subgraph_index=2))],
            ),
            less,
            more,
        ),
        "stablehlo_case": graph_model(Graph(branch, "i a", "y", [Op("STABLEHLO_CASE", "i a", "y", cases)]), negated, same),
        "call": graph_model(Graph({"a": _X, "y": _X}, "a", "y", [Op("CALL", "a", "y", o.CallOptions(subgraph=1))]), negated),
        "stablehlo_composite": graph_model(
            Graph({"a": _X, "y": _X}, "a", "y", [Op("STABLEHLO_COMPOSITE", "a", "y", composite)]), negated
        ),
    }


def _resources() -> dict[str, bytes]:
    keep = Op("VAR_HANDLE", "", "h", o.VarHandleOptions(shared_name="total"))
    setting = Graph({"h": _HANDLE, "start": weights(3)}, "", "", [keep, Op("ASSIGN_VARIABLE", "h start")])
    adding = Graph(
        {"x": _X, "h": _HANDLE, "old": _X, "y": _X}, "x", "y",
        [
            Op("CALL_ONCE", options=o.CallOnceOptions(init_subgraph_index=1)), keep, Op("READ_VARIABLE", "h", "old"),
            Op("ADD", "old x", "y", o.AddOptions()), Op("ASSIGN_VARIABLE", "h y"),
        ],
    )  # fmt: skip
    table = o.HashtableOptions(table_id=5, key_dtype=TensorType.STRING, value_dtype=TensorType.INT64)
    find = Graph(
        {
            "x": Spec(TensorType.STRING, [2]), "h": Spec(TensorType.RESOURCE, [1]), "k": _WORDS, "v": longs(1, 2, 3),
            "none": np.array(-1, np.int64), "y": Spec("int64", [2]), "size": Spec("int64", [1]),
        },
        "x", "y size",
        [
            Op("HASHTABLE", "", "h", table), Op("HASHTABLE_IMPORT", "h k v"), Op("HASHTABLE_FIND", "h x none", "y"),
            Op("HASHTABLE_SIZE", "h", "size"),
        ],
    )  # fmt: skip
    skips = Graph(
        {"text": Spec(TensorType.STRING, []), "y": Spec(TensorType.STRING, [0])}, "text", "y",
        [Op("SKIP_GRAM", "text", "y", o.SkipGramOptions(ngram_size=2, max_skip_size=1))],
    )  # fmt: skip
    return {"variable": graph_model(adding, setting), "hashtable": graph_model(find), "skip_gram": graph_model(skips)}


def _region(
    op: str,
    inputs: Sequence[Spec],
    outputs: Sequence[Spec],
    options: Table,
    body: str,
    values: Sequence[Spec],
    chosen: Any = None,
) -> bytes:
    """A model of one node with a region: a subgraph of one node on scalars."""
    tensors = {f"i{i}": spec for i, spec in enumerate(inputs)} | {f"o{i}": spec for i, spec in enumerate(outputs)}
    given, made = (" ".join(name for name in tensors if name[0] == role) for role in "io")
    result = bools() if body == "STABLEHLO_COMPARE" else values[0]
    arguments = {f"a{i}": spec for i, spec in enumerate(values)}
    region = Graph(arguments | {"r": result}, " ".join(arguments), "r", [Op(body, "a0 a1", "r", chosen)])
    return graph_model(Graph(tensors, given, made, [Op(op, given, made, options)]), region)


def _regions() -> dict[str, bytes]:
    scalar = f32()
    window = h.StablehloReduceWindowOptions(
        window_dimensions=longs(2, 2), window_strides=longs(1, 1), base_dilations=longs(1, 1), window_dilations=longs(1, 1),
        padding=longs(0, 0, 0, 0), body_subgraph_index=1,
    )  # fmt: skip
    scatter = h.StablehloScatterOptions(
        update_window_dims=longs(1), inserted_window_dims=longs(0), scatter_dims_to_operand_dims=longs(0, 1), index_vector_dim=1,
        update_computation_subgraph_index=1,
    )  # fmt: skip
    sort = h.StablehloSortOptions(dimension=1, is_stable=True, comparator_subgraph_index=1)
    compare = h.StablehloCompareOptions(comparison_direction=5)
    return {
        "stablehlo_reduce": _region(
            "STABLEHLO_REDUCE", [f32(2, 3), scalar], [f32(2)], h.StablehloReduceOptions(dimensions=longs(1), body_subgraph_index=1),
            "STABLEHLO_ADD", [scalar, scalar],
        ),
        "stablehlo_reduce_window": _region("STABLEHLO_REDUCE_WINDOW", [f32(4, 4), scalar], [f32(3, 3)], window, "ADD", [scalar, scalar]),
        "stablehlo_scatter": _region(
            "STABLEHLO_SCATTER", [f32(4, 5), i32(3, 2), f32(3, 2)], [f32(4, 5)], scatter, "STABLEHLO_ADD", [scalar, scalar]
        ),
        "stablehlo_sort": _region(
            "STABLEHLO_SORT", [f32(2, 4), i32(2, 4)], [f32(2, 4), i32(2, 4)], sort, "STABLEHLO_COMPARE",
            [scalar, scalar, i32(), i32()], compare,
        ),
        "reduce_window": one_op_model(
            "REDUCE_WINDOW", [f32(4, 4), scalar, longs(2, 2), longs(1, 1), longs(1, 1)], [f32(3, 3)],
            h.ReduceWindowOptions(reduce_function=1),
        ),
    }  # fmt: skip


def _nets() -> dict[str, bytes]:
    conv = o.Conv2DOptions(stride_w=2, stride_h=2, fused_activation_function=ActivationFunctionType.RELU)
    full = o.FullyConnectedOptions()
    net = Graph(
        {
            "x": f32(1, 6, 6, 2), "w": weights(4, 3, 3, 2), "b": weights(4), "c": f32(1, 3, 3, 4), "axes": ints(1, 2), "m": f32(1, 4),
            "w2": weights(3, 4), "b2": weights(3), "d": f32(1, 3), "y": f32(1, 3),
        },
        "x", "y",
        [
            Op("CONV_2D", "x w b", "c", conv), Op("MEAN", "c axes", "m", o.ReducerOptions()), Op("FULLY_CONNECTED", "m w2 b2", "d", full),
            Op("SOFTMAX", "d", "y", o.SoftmaxOptions(beta=1.0)),
        ],
    )  # fmt: skip
    quantized = Graph(
        {
            "x": q8(1, 6, 6, 2), "w": q8_weights(4, 3, 3, 2), "b": q32_bias(4), "c": q8(1, 3, 3, 4), "p": q8(1, 3, 3, 4), "shape": ints(1, -1),
            "f": q8(1, 36), "w2": q8_weights(3, 36), "b2": q32_bias(3), "y": q8(1, 3),
        },
        "x", "y",
        [
            Op("CONV_2D", "x w b", "c", conv), Op("ADD", "c c", "p", o.AddOptions()), Op("RESHAPE", "p shape", "f"),
            Op("FULLY_CONNECTED", "f w2 b2", "y", full),
        ],
    )  # fmt: skip
    shapes = Graph(
        {
            "x": f32(2, 3), "s": i32(2), "b": ints(0), "e": ints(1), "k": ints(1), "n": i32(1), "v": np.array(1.0, np.float32), "o": f32(2),
            "y": f32(2, 3), "c": f32(2, 1),
        },
        "x", "y",
        [
            Op("SHAPE", "x", "s", o.ShapeOptions(out_type=TensorType.INT32)),
            Op("STRIDED_SLICE", "s b e k", "n", o.StridedSliceOptions()), Op("FILL", "n v", "o"), Op("EXPAND_DIMS", "o e", "c"),
            Op("ADD", "x c", "y", o.AddOptions()),
        ],
    )  # fmt: skip
    return {
        "net_float": graph_model(net, signatures={"serve": 0}), "net_int8": graph_model(quantized), "net_shapes": graph_model(shapes),
        "fully_connected_sparse": _sparse(), "densify": _densify(), **_custom(),
    }  # fmt: skip


def _dense() -> Any:
    return weights(4, 8) * (np.arange(32).reshape(4, 8) % 3 == 0)


def _sparse() -> bytes:
    values, sparsity = sparsify(_dense().astype(np.float32))
    matrix = Spec("float32", [4, 8], data=values, sparsity=sparsity)
    return one_op_model("FULLY_CONNECTED", [f32(2, 8), matrix, None], [f32(2, 4)], o.FullyConnectedOptions(), version=8)


def _densify() -> bytes:
    values, sparsity = sparsify(_dense().astype(np.float32), ["DENSE", "SPARSE_CSR"], block_map=[0, 1], block_size=[2, 2])
    return one_op_model("DENSIFY", [Spec("float32", [4, 8], data=values, sparsity=sparsity)], [f32(4, 8)])


def _custom() -> dict[str, bytes]:
    """Models of custom operators that packages of this repository serve, with FlexBuffers options."""
    detection = {
        "max_detections": 3, "max_classes_per_detection": 1, "detections_per_class": 2, "use_regular_nms": False,
        "nms_score_threshold": 0.2, "nms_iou_threshold": 0.5, "num_classes": 2, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0,
        "w_scale": 5.0,
    }  # fmt: skip
    made: dict[str, tuple[list[Spec], list[Spec], dict[str, Any]]] = {
        "TFLite_Detection_PostProcess": ([f32(1, 5, 4), f32(1, 5, 3), f32(5, 4)], [f32(1)] * 4, detection),
        "AudioSpectrogram": ([f32(16, 1)], [f32(1, 1, 1)], {"window_size": 8, "stride": 4, "magnitude_squared": True}),
        "Atan": ([f32(2, 3)], [f32(2, 3)], {}),
        "SignalRfft": ([Spec("int16", [16])], [Spec("int16", [18])], {"T": 7, "fft_length": 16}),
        "SignalFramer": ([Spec("int16", [8])], [Spec("int16", [3, 4]), bools()], {"frame_size": 4, "frame_step": 2, "prefill": True}),
        "SignalDelay": ([Spec("int16", [2, 4])], [Spec("int16", [2, 4])], {"delay_length": 3}),
        "SignalStacker": ([Spec("int16", [4])], [Spec("int16", [12]), bools()], {"num_channels": 4, "stacker_left_context": 1,
                                                                                "stacker_right_context": 1, "stacker_step": 1}),
    }  # fmt: skip
    models = {}
    for name, (inputs, outputs, options) in made.items():
        builder = ModelBuilder(name)
        graph = builder.add_subgraph()
        given = [graph.add_tensor(f"i{i}", spec.type, spec.shape) for i, spec in enumerate(inputs)]
        results = [graph.add_tensor(f"o{i}", spec.type, spec.shape) for i, spec in enumerate(outputs)]
        graph.set_inputs(*given)
        graph.set_outputs(*results)
        graph.add_operator(name, given, results, custom_options=options)
        models[name.lower()] = builder.to_bytes()
    return models
