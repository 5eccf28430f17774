"""Small models that work with what follows from the input's length: masks, ranges, tables of positions, weights; also in IF and WHILE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import ModelBuilder, TensorType
from oplet.model.builders.model_builder import SubgraphBuilder
from oplet.schema.enums import Padding
from oplet.schema.options import (
    AddOptions,
    BatchMatMulOptions,
    CastOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    DivOptions,
    ExpandDimsOptions,
    FillOptions,
    FloorModOptions,
    FullyConnectedOptions,
    GatherOptions,
    IfOptions,
    LessEqualOptions,
    LessOptions,
    LogicalAndOptions,
    MulOptions,
    OneHotOptions,
    PackOptions,
    PadOptions,
    RangeOptions,
    ReducerOptions,
    ReshapeOptions,
    SelectOptions,
    SelectV2Options,
    ShapeOptions,
    SliceOptions,
    SoftmaxOptions,
    StridedSliceOptions,
    SubOptions,
    TransposeOptions,
    WhileOptions,
)
from oplet.schema.table import Table

__all__ = ["FAMILY", "NESTS", "family_model"]

#: Columns of the input, whose rows are as many as one likes.
WIDTH = 4
_RANDOM = np.random.default_rng(7)
_TABLE = _RANDOM.normal(size=(16, WIDTH)).astype(np.float32)
_STACK = _RANDOM.normal(size=(3, WIDTH, WIDTH)).astype(np.float32)


class Maker:
    """A subgraph in the making: nodes in, tensors out."""

    def __init__(self, graph: SubgraphBuilder, x: int) -> None:
        self.graph = graph
        self.x = x

    def constant(self, value: Any, dtype: Any = "int32", **more: Any) -> int:
        array = np.array(value, dtype)
        return self.graph.add_tensor("constant", dtype, array.shape, data=array, **more)

    def node(self, op: str, inputs: list[int], options: Table | None, shape: Any, dtype: Any = "float32", **more: Any) -> int:
        made = self.graph.add_tensor(op.lower(), dtype, shape, **more)
        self.graph.add_operator(op, inputs, [made], options)
        return made

    def length(self) -> int:
        shape = self.node("SHAPE", [self.x], ShapeOptions(out_type=TensorType.INT32), [2], "int32")
        ends = [self.constant([end]) for end in (0, 1, 1)]
        return self.node("STRIDED_SLICE", [shape, *ends], StridedSliceOptions(shrink_axis_mask=1), [], "int32")

    def range(self, length: int) -> int:
        return self.node("RANGE", [self.constant(0), length, self.constant(1)], RangeOptions(), [-1], "int32")

    def column(self, row: int, dtype: Any = "int32") -> int:
        return self.node("EXPAND_DIMS", [row, self.constant(1)], ExpandDimsOptions(), [-1, 1], dtype)

    def pack(self, *values: int) -> int:
        return self.node("PACK", list(values), PackOptions(values_count=len(values)), [len(values)], "int32")

    def add(self, a: int, b: int) -> int:
        return self.node("ADD", [a, b], AddOptions(), [-1, WIDTH])

    def mul(self, a: int, b: int) -> int:
        return self.node("MUL", [a, b], MulOptions(), [-1, WIDTH])

    def scores(self) -> int:
        return self.node("BATCH_MATMUL", [self.x, self.x], BatchMatMulOptions(adj_y=True), [-1, -1])

    def attended(self, scores: int) -> int:
        weights = self.node("SOFTMAX", [scores], SoftmaxOptions(beta=1.0), [-1, -1])
        return self.node("BATCH_MATMUL", [weights, self.x], BatchMatMulOptions(), [-1, WIDTH])

    def modulo(self, by: int) -> int:
        return self.node("FLOOR_MOD", [self.length(), self.constant(by)], FloorModOptions(), [], "int32")

    def chosen(self, stack: Any) -> int:
        """One of three matrices, as the length has it."""
        return self.node("GATHER", [self.constant(stack, "float32"), self.modulo(3)], GatherOptions(), stack.shape[1:])

    def rows_of_table(self, dtype: Any = "float32", **more: Any) -> int:
        table = _TABLE if dtype == "float32" else np.round(_TABLE * 20).astype(dtype)
        size = self.pack(self.length(), self.constant(WIDTH))
        return self.node(
            "SLICE",
            [self.constant(table, dtype, **more), self.constant([0, 0]), size],
            SliceOptions(),
            [-1, WIDTH],
            dtype,
            **more,
        )


def causal_mask(m: Maker) -> int:
    numbers = m.range(m.length())
    mask = m.node("LESS_EQUAL", [numbers, m.column(numbers)], LessEqualOptions(), [-1, -1], "bool")
    return m.attended(m.node("SELECT_V2", [mask, m.scores(), m.constant(-1e9, "float32")], SelectV2Options(), [-1, -1]))


def band_part(m: Maker) -> int:
    length = m.length()
    numbers = m.range(length)
    apart = m.node("SUB", [numbers, m.column(numbers)], SubOptions(), [-1, -1], "int32")
    low = m.node("LESS_EQUAL", [apart, m.constant(1)], LessEqualOptions(), [-1, -1], "bool")
    high = m.node("LESS_EQUAL", [m.constant(-2), apart], LessEqualOptions(), [-1, -1], "bool")
    band = m.node("LOGICAL_AND", [low, high], LogicalAndOptions(), [-1, -1], "bool")
    zeros = m.node("FILL", [m.pack(length, length), m.constant(0, "float32")], FillOptions(), [-1, -1])
    return m.attended(m.node("SELECT", [band, m.scores(), zeros], SelectOptions(), [-1, -1]))


def sequence_mask(m: Maker) -> int:
    inside = m.node("LESS", [m.range(m.length()), m.constant(3)], LessOptions(), [-1], "bool")
    options = CastOptions(in_data_type=TensorType.BOOL, out_data_type=TensorType.FLOAT32)
    return m.mul(m.x, m.column(m.node("CAST", [inside], options, [-1]), "float32"))


def position_table(m: Maker) -> int:
    return m.add(m.x, m.rows_of_table())


def gathered_positions(m: Maker) -> int:
    table = m.constant(_TABLE, "float32")
    return m.mul(m.node("GATHER", [table, m.range(m.length())], GatherOptions(), [-1, WIDTH]), m.x)


def reversed_rows(m: Maker) -> int:
    last = m.node("SUB", [m.length(), m.constant(1)], SubOptions(), [], "int32")
    numbers = m.node("RANGE", [last, m.constant(-1), m.constant(-1)], RangeOptions(), [-1], "int32")
    return m.node("GATHER", [m.x, numbers], GatherOptions(), [-1, WIDTH])


def folded_weights(m: Maker) -> int:
    return m.node("FULLY_CONNECTED", [m.x, m.chosen(_STACK)], FullyConnectedOptions(), [-1, WIDTH])


def folded_matrix(m: Maker) -> int:
    return m.node("BATCH_MATMUL", [m.x, m.chosen(_STACK)], BatchMatMulOptions(), [-1, WIDTH])


def folded_filter(m: Maker) -> int:
    shape = m.pack(m.constant(1), m.length(), m.constant(2), m.constant(2))
    maps = m.node("RESHAPE", [m.x, shape], ReshapeOptions(), [1, -1, 2, 2])
    filters = m.chosen(_RANDOM.normal(size=(3, 2, 3, 3, 2)).astype(np.float32))
    options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    made = m.node("CONV_2D", [maps, filters, m.constant([0.5, -0.5], "float32")], options, [1, -1, 2, 2])
    return m.node("RESHAPE", [made, m.constant([-1, WIDTH])], ReshapeOptions(), [-1, WIDTH])


def folded_depthwise(m: Maker) -> int:
    shape = m.pack(m.constant(1), m.length(), m.constant(1), m.constant(WIDTH))
    maps = m.node("RESHAPE", [m.x, shape], ReshapeOptions(), [1, -1, 1, WIDTH])
    filters = m.chosen(_RANDOM.normal(size=(3, 1, 3, 1, WIDTH)).astype(np.float32))
    options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1)
    made = m.node("DEPTHWISE_CONV_2D", [maps, filters, m.constant([0.5] * WIDTH, "float32")], options, [1, -1, 1, WIDTH])
    return m.node("RESHAPE", [made, m.constant([-1, WIDTH])], ReshapeOptions(), [-1, WIDTH])


def folded_slope(m: Maker) -> int:
    return m.node("PRELU", [m.x, m.chosen(_STACK[:, 0])], None, [-1, WIDTH])


def quantized_positions(m: Maker) -> int:
    steps = {"scale": 0.05, "zero_point": 3}
    source = m.node("QUANTIZE", [m.x], None, [-1, WIDTH], "int8", **steps)
    table = m.rows_of_table("int8", scale=0.05, zero_point=0)
    total = m.node("ADD", [table, source], AddOptions(), [-1, WIDTH], "int8", scale=0.07, zero_point=-5)
    product = m.node("MUL", [table, total], MulOptions(), [-1, WIDTH], "int8", scale=0.09, zero_point=1)
    return m.node("DEQUANTIZE", [product], None, [-1, WIDTH])


def diagonal(m: Maker) -> int:
    length = m.length()
    hot = m.node(
        "ONE_HOT",
        [m.range(length), length, m.constant(2, "float32"), m.constant(-1, "float32")],
        OneHotOptions(axis=-1),
        [-1, -1],
    )
    return m.node("BATCH_MATMUL", [hot, m.x], BatchMatMulOptions(), [-1, WIDTH])


def shape_chain(m: Maker) -> int:
    twice = m.node("MUL", [m.length(), m.constant(2)], MulOptions(), [], "int32")
    tall = m.node("RESHAPE", [m.x, m.pack(twice, m.constant(2))], ReshapeOptions(), [-1, 2])
    wide = m.node("TRANSPOSE", [tall, m.constant([1, 0])], TransposeOptions(), [2, -1])
    return m.node("RESHAPE", [wide, m.pack(m.length(), m.constant(WIDTH))], ReshapeOptions(), [-1, WIDTH])


def mean_by_length(m: Maker) -> int:
    options = CastOptions(in_data_type=TensorType.INT32, out_data_type=TensorType.FLOAT32)
    count = m.node("CAST", [m.length()], options, [])
    total = m.node("SUM", [m.x, m.constant([0])], ReducerOptions(keep_dims=True), [1, WIDTH])
    return m.node("SUB", [m.x, m.node("DIV", [total, count], DivOptions(), [1, WIDTH])], SubOptions(), [-1, WIDTH])


def padded(m: Maker) -> int:
    before = m.modulo(3)
    paddings = m.node("RESHAPE", [m.pack(before, m.constant(0), m.constant(0), m.constant(0)), m.constant([2, 2])],
                      ReshapeOptions(), [2, 2], "int32")  # fmt: skip
    longer = m.node("PAD", [m.x, paddings], PadOptions(), [-1, WIDTH])
    size = m.pack(m.length(), m.constant(WIDTH))
    return m.node("SLICE", [longer, m.constant([0, 0]), size], SliceOptions(), [-1, WIDTH])


FAMILY: dict[str, Callable[[Maker], int]] = {
    made.__name__: made
    for made in (
        causal_mask, band_part, sequence_mask, position_table, gathered_positions, reversed_rows, folded_weights, folded_matrix,
        folded_filter, folded_depthwise, folded_slope, quantized_positions, diagonal, shape_chain, mean_by_length, padded,
    )
}  # fmt: skip
NESTS = ("plain", "if", "while")


def family_model(name: str, nest: str) -> bytes:
    """A model of one input (rows, WIDTH) of any number of rows up to 16, and an output of the same shape."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x = main.add_tensor("x", "float32", [-1, WIDTH])
    main.set_inputs(x)
    if nest == "plain":
        main.set_outputs(FAMILY[name](Maker(main, x)))
        return builder.to_bytes()
    outer = Maker(main, x)
    if nest == "if":
        # Long inputs go through it, short ones too; only single rows do not.
        condition = outer.node("LESS", [outer.constant(1), outer.length()], LessOptions(), [], "bool")
        result = outer.node("IF", [condition, x], IfOptions(then_subgraph_index=1, else_subgraph_index=2), [-1, WIDTH])
        for inner in (FAMILY[name], lambda m: m.node("NEG", [m.x], None, [-1, WIDTH])):
            _body(builder, inner)
    else:
        number, result = (main.add_tensor(*about) for about in (("number", "int32", []), ("y", "float32", [-1, WIDTH])))
        main.add_operator(
            "WHILE", [outer.constant(0), x], [number, result], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
        )
        condition_graph = builder.add_subgraph("condition")
        inputs = [condition_graph.add_tensor("i", "int32", []), condition_graph.add_tensor("x", "float32", [-1, WIDTH])]
        condition_graph.set_inputs(*inputs)
        inner_maker = Maker(condition_graph, inputs[1])
        condition_graph.set_outputs(inner_maker.node("LESS", [inputs[0], inner_maker.constant(2)], LessOptions(), [], "bool"))
        _body(builder, FAMILY[name], counts=True)
    main.set_outputs(result)
    return builder.to_bytes()


def _body(builder: ModelBuilder, make: Callable[[Maker], int], *, counts: bool = False) -> None:
    graph = builder.add_subgraph("body")
    before = [graph.add_tensor("i", "int32", [])] if counts else []
    x = graph.add_tensor("x", "float32", [-1, WIDTH])
    maker = Maker(graph, x)
    graph.set_inputs(*before, x)
    after = [maker.node("ADD", [before[0], maker.constant(1)], AddOptions(), [], "int32")] if counts else []
    graph.set_outputs(*after, make(maker))
