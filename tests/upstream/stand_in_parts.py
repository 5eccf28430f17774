"""The kinds of models that `stand_ins` lists: of one node with its names and shapes, and a few small nets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oplet.builder import ModelBuilder
from oplet.schema import options as o
from oplet.schema.enums import ActivationFunctionType, Padding

RELU, RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6
SAME, VALID = Padding.SAME, Padding.VALID

Shape = Sequence[int | None]
Named = tuple[str, Shape] | tuple[str, Shape, str]

_weights = np.random.default_rng(2026)


def weights(*shape: int) -> np.ndarray:
    """Values between -1 and 1, float32."""
    return _weights.uniform(-1, 1, shape).astype(np.float32)


def integers(*values: Any) -> np.ndarray:
    """int32 values; one alone is a scalar."""
    return np.array(values[0] if len(values) == 1 else values, np.int32)


def plain(name: str) -> str:
    """The name that a signature gives to a tensor which a converter named after it."""
    return name.removeprefix("serving_default_").removeprefix("slice_").removeprefix("selectv2_").removesuffix(":0")


def single(
    op: str,
    inputs: Sequence[Named],
    output: Named | Sequence[Named],
    options: Any = None,
    constants: Sequence[tuple[str, np.ndarray]] = (),
    order: Sequence[int | None] | None = None,
    *,
    key: str = "serving_default",
    outputs: Sequence[str] = ("output",),
) -> ModelBuilder:
    """A model of one node.

    Args:
        order: the node's inputs as positions among `inputs` and then `constants`; these in their order by default.
        outputs: the names of the signature's outputs.
    """
    builder = ModelBuilder("a stand-in")
    graph = builder.add_subgraph("main")
    taken = [graph.add_tensor(name, *rest, shape) for name, shape, *rest in ((n, s, *(r or ["float32"])) for n, s, *r in inputs)]
    fixed = [graph.add_tensor(name, value.dtype, value.shape, data=value) for name, value in constants]
    results = [output] if isinstance(output[0], str) else output
    given = [graph.add_tensor(n, *(rest or ["float32"]), shape) for n, shape, *rest in results]
    everything = [*taken, *fixed]
    wanted = everything if order is None else [None if i is None else everything[i] for i in order]
    graph.add_operator(op, wanted, given, options)
    graph.set_inputs(*taken)
    graph.set_outputs(*given)
    builder.add_signature(key, {plain(n[0]): t for n, t in zip(inputs, taken)}, dict(zip(outputs, given)))
    return builder


def one(op: str, shape: Shape, options: Any = None, name: str = "input", output: str = "output") -> ModelBuilder:
    """A model of one node that gives the shape it takes."""
    return single(op, [(f"serving_default_{name}:0", shape)], ("PartitionedCall:0", shape), options, outputs=[output])


def two(
    op: str, shape: Shape, options: Any = None, names: str = "input{}", output: str = "output", dtype: str = "float32"
) -> ModelBuilder:
    """A model of one node that takes two tensors of a shape and gives one of it."""
    inputs = [(f"serving_default_{names.format(i)}:0", shape) for i in (1, 2)]
    return single(op, inputs, ("PartitionedCall:0", shape, dtype), options, outputs=[output])


def dense(name: str, shape: Shape, to: int, options: Any = None, bias: bool = True, output: str = "dense_1") -> ModelBuilder:
    """A model of one fully connected layer."""
    values = [("arith.constant", weights(to, int(shape[-1] or 1)))] + [("arith.constant1", weights(to))] * bias
    options = options or o.FullyConnectedOptions(keep_num_dims=True)
    order = [0, 1, 2 if bias else None]
    given = ("StatefulPartitionedCall:0", [*shape[:-1], to])
    return single("FULLY_CONNECTED", [(f"serving_default_{name}:0", shape)], given, options, values, order, outputs=[output])


def keras_dense() -> ModelBuilder:
    """A fully connected layer with Keras's names."""
    values = [("sequential/dense/BiasAdd/ReadVariableOp", weights(16)), ("sequential/dense/MatMul", weights(16, 8))]
    given = ("StatefulPartitionedCall:0", [None, 16])
    taken = [("serving_default_input_1:0", [None, 8])]
    return single("FULLY_CONNECTED", taken, given, o.FullyConnectedOptions(), values, [0, 2, 1], outputs=["dense"])


def dense_and_logistic() -> ModelBuilder:
    """A fully connected layer and a LOGISTIC."""
    builder = ModelBuilder("a stand-in")
    graph = builder.add_subgraph("main")
    x = graph.add_tensor("serving_default_input_1:0", "float32", [None, 10])
    w = graph.add_tensor("model/dense/MatMul", "float32", [5, 10], data=weights(5, 10))
    h = graph.add_tensor("model/dense/MatMul2", "float32", [None, 5])
    y = graph.add_tensor("StatefulPartitionedCall:0", "float32", [None, 5])
    graph.add_operator("FULLY_CONNECTED", [x, w, None], [h], o.FullyConnectedOptions())
    graph.add_operator("LOGISTIC", [h], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    builder.add_signature("serving_default", {"input_1": x}, {"tf.math.sigmoid": y})
    return builder


def digits() -> ModelBuilder:
    """A convolutional net of the size that tells digits apart; it has learned nothing."""
    builder = ModelBuilder("a stand-in")
    graph = builder.add_subgraph("main")
    conv = "sequential/conv2d/Relu;sequential/conv2d/BiasAdd;sequential/conv2d/Conv2D;sequential/conv2d/BiasAdd/ReadVariableOp"

    def tensor(name: str, shape: Shape, data: Any = None, dtype: str = "float32") -> int:
        return graph.add_tensor(name, dtype, shape, data=data)

    x = tensor("serving_default_conv2d_input:0", [None, 28, 28, 1])
    last = tensor("arith.constant", [10, 32], weights(10, 32) / 4)
    first = tensor("arith.constant1", [32, 1568], weights(32, 1568) / 20)
    bias = tensor("arith.constant2", [32], weights(32) / 10)
    flat = tensor("arith.constant3", [2], [-1, 1568], "int32")
    filters = tensor("sequential/conv2d/Conv2D", [8, 3, 3, 1], weights(8, 3, 3, 1))
    offsets = tensor(conv, [8], weights(8) / 10)
    seen = tensor(f"{conv}1", [None, 28, 28, 8])
    pooled = tensor("sequential/average_pooling2d/AvgPool", [None, 14, 14, 8])
    row = tensor("sequential/flatten/Reshape", [None, 1568])
    hidden = tensor("sequential/dense/MatMul;sequential/dense/Relu;sequential/dense/BiasAdd", [None, 32])
    logits = tensor("sequential/dense_1/MatMul", [None, 10])
    y = tensor("StatefulPartitionedCall:0", [None, 10])
    graph.add_operator(
        "CONV_2D",
        [x, filters, offsets],
        [seen],
        o.Conv2DOptions(padding=SAME, stride_w=1, stride_h=1, fused_activation_function=RELU),
    )
    pool = o.Pool2DOptions(padding=VALID, stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    graph.add_operator("AVERAGE_POOL_2D", [seen], [pooled], pool)
    graph.add_operator("RESHAPE", [pooled, flat], [row], o.ReshapeOptions())
    graph.add_operator("FULLY_CONNECTED", [row, first, bias], [hidden], o.FullyConnectedOptions(fused_activation_function=RELU))
    graph.add_operator("FULLY_CONNECTED", [hidden, last, None], [logits], o.FullyConnectedOptions())
    graph.add_operator("SOFTMAX", [logits], [y], o.SoftmaxOptions(beta=1.0))
    graph.set_inputs(x)
    graph.set_outputs(y)
    builder.add_signature("serving_default", {"conv2d_input": x}, {"dense_1": y})
    return builder


def add_and_multiply() -> ModelBuilder:
    """Two signatures of one node each."""
    builder = ModelBuilder("a stand-in")
    for key, op, name, end, options, value in (
        ("add", "ADD", "Add/y", "PartitionedCall:0", o.AddOptions(), 10.0),
        ("multiply", "MUL", "Mul/y", "PartitionedCall_1:0", o.MulOptions(), 10.0),
    ):
        graph = builder.add_subgraph(key)
        x = graph.add_tensor(f"{key}_x:0", "float32", [None])
        by = graph.add_tensor(name, "float32", [], data=np.float32(value))
        y = graph.add_tensor(end, "float32", [None])
        graph.add_operator(op, [x, by], [y], options)
        graph.set_inputs(x)
        graph.set_outputs(y)
        builder.add_signature(key, {"x": x}, {f"{key}_result": y}, graph)
    return builder


def shared(tensor: bool) -> ModelBuilder:
    """Two signatures whose fully connected layers share a buffer; with `tensor`, two layers of the first share a tensor too."""
    builder = ModelBuilder("a stand-in")
    width, to = (4, 4) if tensor else (16, 32)
    rows = 2 if tensor else 8
    buffer = builder.add_buffer(weights(to, width).tobytes())
    for n in (1, 2):
        graph = builder.add_subgraph(f"sig{n}")
        end = "" if n == 1 else "1"
        x = graph.add_tensor(f"sig{n}_x:0", "float32", [n, rows, width])
        w = graph.add_tensor(f"arith.constant{end}" if tensor else f"BatchMatMulV3{end}", "float32", [to, width], buffer=buffer)
        steps = [x] + ([graph.add_tensor(f"BatchMatMulV3{end}", "float32", [n, rows, to])] if tensor else [])
        y = graph.add_tensor("PartitionedCall:0" if n == 1 else "PartitionedCall_1:0", "float32", [n, rows, to])
        for source, target in zip(steps, [*steps[1:], y]):
            graph.add_operator("FULLY_CONNECTED", [source, w, None], [target], o.FullyConnectedOptions(keep_num_dims=True))
        graph.set_inputs(x)
        graph.set_outputs(y)
        builder.add_signature(f"sig{n}", {"x": x}, {f"sig{n}_result": y}, graph)
    return builder


def products(constant: bool) -> ModelBuilder:
    """Two BATCH_MATMULs by one matrix, the second by its transpose."""
    builder = ModelBuilder("a stand-in")
    graph = builder.add_subgraph("main")
    x = graph.add_tensor("serving_default_input_1:0", "float32", [2, 4, 16])
    if constant:
        back = graph.add_tensor("arith.constant", "float32", [2, 8, 16], data=weights(2, 8, 16))
        by = graph.add_tensor("model/tf.linalg.matmul/MatMul/b", "float32", [2, 16, 8], data=weights(2, 16, 8))
    else:
        by = back = graph.add_tensor("serving_default_input_2:0", "float32", [2, 16, 8])
    middle = graph.add_tensor("model/tf.linalg.matmul/MatMul", "float32", [2, 4, 8])
    y = graph.add_tensor("PartitionedCall:0", "float32", [2, 4, 16])
    graph.add_operator("BATCH_MATMUL", [x, by], [middle], o.BatchMatMulOptions())
    graph.add_operator("BATCH_MATMUL", [middle, back], [y], o.BatchMatMulOptions(adj_y=not constant))
    taken = {"input_1": x} | ({} if constant else {"input_2": by})
    graph.set_inputs(*taken.values())
    graph.set_outputs(y)
    builder.add_signature("serving_default", taken, {"tf.linalg.matmul_1": y})
    return builder


def by_constant(op: str, options: Any, shape: Shape, output: str) -> ModelBuilder:
    """A node that takes an input and a constant of [32, 32]."""
    constants = [("Const", weights(32, 32))]
    taken, given = [("serving_default_input_1:0", shape)], ("PartitionedCall:0", shape)
    return single(op, taken, given, options, constants, outputs=[output])


def slice_() -> ModelBuilder:
    """A SLICE whose begin and size are inputs of unknown length."""
    inputs: list[Named] = [
        ("slice_begin:0", [None], "int32"),
        ("slice_size:0", [None], "int32"),
        ("slice_input_tensor:0", [None] * 3),
    ]
    given = ("PartitionedCall:0", [None, None, None])
    return single("SLICE", inputs, given, None, (), [2, 0, 1], key="slice", outputs=["output_0"])


def gathered() -> ModelBuilder:
    """GATHER_ND of parameters at constant positions."""
    constants = [("Const", integers([[0, 0], [1, 0], [1, 1]]))]
    given = ("PartitionedCall:0", [3, 4, 1])
    return single("GATHER_ND", [("serving_default_input:0", [2, 2, 4, 1])], given, o.GatherNdOptions(), constants)


def positioned() -> ModelBuilder:
    """GATHER_ND of constant parameters."""
    constants = [("Const", weights(2, 2))]
    taken = [("serving_default_indices:0", [3, 2], "int32")]
    return single("GATHER_ND", taken, ("PartitionedCall:0", [3]), o.GatherNdOptions(), constants, [1, 0])


def reduced(
    op: str, shape: Shape, given: Shape, name: str, axes: np.ndarray, keep: bool = False, source: str = "input_1"
) -> ModelBuilder:
    """A reduction over constant axes."""
    options = o.ReducerOptions(keep_dims=keep)
    axis = {"MEAN": "model/tf.math.reduce_mean/Mean/reduction_indices", "SUM": "model/tf.math.reduce_sum/Sum/reduction_indices"}
    constants = [(axis.get(op, "Const"), axes)]
    return single(op, [(f"serving_default_{source}:0", shape)], ("PartitionedCall:0", given), options, constants, outputs=[name])


def shaped(op: str, shape: Shape, given: Shape, options: Any, *constants: np.ndarray) -> ModelBuilder:
    """A node that moves an input's values by constants."""
    values = [(f"Const{i or ''}", value) for i, value in enumerate(constants)]
    return single(op, [("serving_default_input:0", shape)], ("PartitionedCall:0", given), options, values)


def selected(op: str) -> ModelBuilder:
    """A choice between two inputs."""
    if op == "SELECT_V2":
        inputs: list[Named] = [("selectv2_condition_tensor:0", [None], "bool")]
        inputs += [(f"selectv2_{n}_tensor:0", [None]) for n in "et"]
        return single(op, inputs, ("PartitionedCall:0", [None]), None, (), [0, 2, 1], key="selectv2", outputs=["output_0"])
    inputs = [("serving_default_condition:0", [2, 3], "bool"), ("serving_default_y:0", [2, 3]), ("serving_default_x:0", [2, 3])]
    return single(op, inputs, ("PartitionedCall:0", [2, 3]), None, (), [0, 2, 1])


def transposed(dtype: str) -> ModelBuilder:
    """A TRANSPOSE of the middle axes."""
    constants = [("sequential_1/permute_1/transpose/perm", integers(0, 2, 1, 3))]
    taken, given = [("serving_default_input_2:0", [1, 2, 3, 4], dtype)], ("PartitionedCall:0", [1, 3, 2, 4], dtype)
    return single("TRANSPOSE", taken, given, None, constants, outputs=["permute_1"])


def strided() -> ModelBuilder:
    """A STRIDED_SLICE."""
    name = "model/tf.__operators__.getitem/strided_slice/stack"
    constants = [(f"{name}{end}", integers(*v)) for end, v in (("", (0, 4, 4)), ("_1", (0, 25, 25)), ("_2", (1, 3, 3)))]
    options = o.StridedSliceOptions(begin_mask=1, end_mask=1)
    taken, given = [("serving_default_input_1:0", [None, 32, 32])], ("PartitionedCall:0", [None, 7, 7])
    return single("STRIDED_SLICE", taken, given, options, constants, outputs=["tf.__operators__.getitem"])


def deconvolved() -> ModelBuilder:
    """A TRANSPOSE_CONV with bias."""
    stem = "sequential_5/conv2d_transpose_3"
    bias = f"{stem}/BiasAdd;{stem}/conv2d_transpose;{stem}/BiasAdd/ReadVariableOp"
    shape, filters = (f"{stem}/stack", integers(1, 20, 20, 1)), (f"{stem}/conv2d_transpose", weights(1, 5, 5, 1))
    options = o.TransposeConvOptions(padding=VALID, stride_w=1, stride_h=1)
    given = ("StatefulPartitionedCall:0", [1, 20, 20, 1])
    constants = [shape, filters, (bias, weights(1))]
    taken = [("serving_default_input_6:0", [1, 16, 16, 1])]
    return single("TRANSPOSE_CONV", taken, given, options, constants, [1, 2, 0, 3], outputs=["conv2d_transpose_3"])


def depthwise() -> ModelBuilder:
    """A DEPTHWISE_CONV_2D with bias."""
    stem = "sequential/depthwise_conv2d"
    bias = f"{stem}/BiasAdd;{stem}/depthwise;{stem}/BiasAdd/ReadVariableOp"
    options = o.DepthwiseConv2DOptions(padding=SAME, stride_w=1, stride_h=1, depth_multiplier=1)
    constants = [(f"{stem}/depthwise", weights(1, 8, 8, 3) / 8), (bias, weights(3))]
    taken, given = [("serving_default_input_1:0", [1, 64, 64, 3])], ("StatefulPartitionedCall:0", [1, 64, 64, 3])
    return single("DEPTHWISE_CONV_2D", taken, given, options, constants, outputs=["depthwise_conv2d"])


def looked_up() -> ModelBuilder:
    """An EMBEDDING_LOOKUP, whose signature has no outputs."""
    constants = [("table", weights(16, 8))]
    taken = [("lookup", [1], "int32")]
    return single("EMBEDDING_LOOKUP", taken, ("Identity_1", [1, 8]), None, constants, key="lookup", outputs=())


def joined(op: str, names: str, shape: Shape, given: Shape, options: Any, output: str) -> ModelBuilder:
    """Two inputs side by side."""
    inputs = [(f"serving_default_{names.format(i)}:0", shape) for i in (1, 2)]
    return single(op, inputs, ("PartitionedCall:0", given), options, outputs=[output])


def parted(op: str) -> ModelBuilder:
    """One input in two parts."""
    if op == "UNPACK":
        results = [(f"PartitionedCall:{i}", [3, 4]) for i in range(2)]
        options = o.UnpackOptions(num=2, axis=0)
        return single(op, [("serving_default_input:0", [2, 3, 4])], results, options, outputs=["output1", "output2"])
    results = [(f"PartitionedCall:{i}", [1, 10, 20, 15]) for i in range(2)]
    constants = [("model/tf.split/split/split_dim", integers(3))]
    taken = [("serving_default_input_1:0", [1, 10, 20, 30])]
    names = ["tf.split", "tf.split_1"]
    return single(op, taken, results, o.SplitOptions(num_splits=2), constants, [1, 0], outputs=names)


def pooled(infinite: bool) -> ModelBuilder:
    """A MAX_POOL_2D, behind a PADV2 with minus infinity or alone."""
    options = o.Pool2DOptions(padding=VALID, stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    if not infinite:
        return shaped("MAX_POOL_2D", [1, 6, 8, 1], [1, 3, 4, 1], options)
    builder = ModelBuilder("a stand-in")
    graph = builder.add_subgraph("main")
    x = graph.add_tensor("serving_default_input:0", "float32", [1, 6, 8, 1])
    pads = graph.add_tensor("paddings", "int32", [4, 2], data=[[0, 0], [1, 1], [1, 1], [0, 0]])
    value = graph.add_tensor("value", "float32", [], data=np.float32(-np.inf))
    padded = graph.add_tensor("padded", "float32", [1, 8, 10, 1])
    y = graph.add_tensor("PartitionedCall:0", "float32", [1, 4, 5, 1])
    graph.add_operator("PADV2", [x, pads, value], [padded], o.PadV2Options())
    graph.add_operator("MAX_POOL_2D", [padded], [y], options)
    graph.set_inputs(x)
    graph.set_outputs(y)
    builder.add_signature("serving_default", {"input": x}, {"output": y})
    return builder


def updated() -> ModelBuilder:
    """A DYNAMIC_UPDATE_SLICE."""
    inputs: list[Named] = [("input", [8]), ("update", [4]), ("indices", [1], "int32")]
    return single("DYNAMIC_UPDATE_SLICE", inputs, ("Identity_1", [8]), key="dynamic_update_slice", outputs=["Identity_1"])


def emptied() -> ModelBuilder:
    """A RESHAPE to a scalar."""
    constants = [("arith.constant", np.zeros(0, np.int32))]
    taken, given = [("input", [1, 1], "int32")], ("Identity_1", [], "int32")
    return single("RESHAPE", taken, given, o.ReshapeOptions(), constants, key="main", outputs=["Identity_1"])
