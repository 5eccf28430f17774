"""Random models, each decided by a number, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from tests.random_graphs.wider import WIDER

from oplet import ModelBuilder, TensorType
from oplet.model.builders.model_builder import SubgraphBuilder
from oplet.schema import options as o
from oplet.schema.enums import ActivationFunctionType, Padding

__all__ = ["Made", "Maker", "Step", "generate"]

_F32, _I8, _I32, _BOOL = "float32", "int8", "int32", "bool"
_MOST = 4096  # elements of a tensor


class Value(NamedTuple):
    """A tensor of the graph in the making.

    Attributes:
        index: its number in the subgraph.
        dtype: its type.
        shape: its shape.
        exact: whether all engines must have the same bits: what is discrete is made of such alone.
        scale: of int8 its scale.
        large: whether its values may have grown: they are not multiplied any more.
    """

    index: int
    dtype: str
    shape: tuple[int, ...]
    exact: bool = True
    scale: float = 0.0
    large: int = 0


class Step(NamedTuple):
    """Something that is done with an interpreter: "feed", "invoke", "resize", "allocate", "reset", "set" or "sign".

    Attributes:
        what: which of them.
        seed: decides the values that are fed.
        shapes: of a resize, or of what a signature is given, by the number of the input.
        place: the tensor that is set, or the number of the signature.
    """

    what: str
    seed: int = 0
    shapes: tuple[tuple[int, ...], ...] = ()
    place: int = 0


class Made(NamedTuple):
    """A model, what is done with it, and which outputs are exact, by their place."""

    data: bytes
    steps: list[Step]
    exact: list[bool]
    signatures: list[str]


class Maker:
    """A subgraph in the making: draws, and adds nodes; a wide one draws of all kinds of nodes, and resizes to no rows."""

    def __init__(self, random: np.random.Generator, graph: SubgraphBuilder, values: list[Value], *, wide: bool = False) -> None:
        self.random, self.graph, self.values, self.wide = random, graph, values, wide
        self.inner: list[int] = []  # outputs of nodes

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def below(self, count: int) -> int:
        return int(self.random.integers(count))

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.below(len(items))]

    def some(self, test: Callable[[Value], bool]) -> Value | None:
        """One of the last values more often than of the first."""
        fitting = [value for value in self.values if test(value)]
        return fitting[-1 - min(int(self.random.geometric(0.35)) - 1, len(fitting) - 1)] if fitting else None

    def constant(self, array: Any, dtype: str, **more: Any) -> int:
        value = np.asarray(array, dtype)
        found: int = self.graph.add_tensor("c", dtype, value.shape, data=value, **more)
        return found

    def numbers(self, *shape: int) -> Any:
        return self.random.integers(-8, 9, shape).astype(np.float32) / 8

    def add(self, op: str, inputs: Sequence[Any], out: Value, options: Any = None) -> Value:
        more: dict[str, Any] = {"scale": [out.scale], "zero_point": [0]} if out.scale else {}
        if op == "SLICE":  # LiteRT gives it the shape that is declared, where no dimension is free
            more["shape_signature"] = [-1] * len(out.shape)
        index = self.graph.add_tensor("t", out.dtype, list(out.shape), **more)
        self.graph.add_operator(op, [each.index if isinstance(each, Value) else each for each in inputs], [index], options)
        made = out._replace(index=index)
        self.values.append(made)
        self.inner.append(index)
        return made

    def activation(self) -> ActivationFunctionType:
        kinds = ActivationFunctionType
        return self.pick([kinds.NONE, kinds.NONE, kinds.RELU, kinds.RELU6, kinds.RELU_N1_TO_1])  # type: ignore[no-any-return]


def _float(value: Value) -> bool:
    return value.dtype == _F32


def _elementwise(m: Maker) -> None:
    x = m.some(_float)
    if x is None:
        return
    exact = ["NEG", "ABS", "RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU"]
    if x.exact:
        exact += ["FLOOR", "CEIL", "ROUND"]
    inexact = ["TANH", "LOGISTIC", "HARD_SWISH", "GELU", "ELU", "SIN", "COS"]
    op = m.pick(exact + inexact)
    options = {"LEAKY_RELU": o.LeakyReluOptions(alpha=0.25), "GELU": o.GeluOptions()}.get(op)
    m.add(
        op,
        [x],
        x._replace(exact=x.exact and op in exact, large=0 if op in ("TANH", "LOGISTIC", "SIN", "COS") else x.large),
        options,
    )


def _binary(m: Maker) -> None:
    x = m.some(_float)
    if x is None:
        return
    kinds: dict[str, Any] = {"ADD": o.AddOptions, "SUB": o.SubOptions, "MUL": o.MulOptions, "MAXIMUM": None, "MINIMUM": None}
    op = m.pick(list(kinds))
    if op == "MUL" and x.large > 2:
        op = "ADD"
    kind = kinds[op]
    options = kind(fused_activation_function=m.activation()) if kind else None
    y = m.some(lambda v: _float(v) and v.shape == x.shape) if m.chance(0.6) else None
    grows = int(op == "MUL")
    if y is None or (op in ("MUL", "SUB") and not (x.exact and y.exact)):
        shape = x.shape if m.chance(0.3) else x.shape[-1:] if m.chance(0.7) else ()
        pair = [x.index, m.constant(m.numbers(*shape), _F32)]
        exact, large = x.exact, x.large + grows
    else:
        pair = [x.index, y.index]
        exact, large = x.exact and y.exact, x.large + y.large + grows
    if m.chance(0.3):
        pair.reverse()
    m.add(op, pair, x._replace(exact=exact, large=large), options)


def _shaping(m: Maker) -> None:
    x = m.some(lambda v: v.dtype in (_F32, _I8, _I32) and bool(v.shape))
    if x is None:
        return
    rank = len(x.shape)
    op = m.pick(
        [
            "RESHAPE",
            "TRANSPOSE",
            "CONCATENATION",
            "PAD",
            "STRIDED_SLICE",
            "SLICE",
            "EXPAND_DIMS",
            "TILE",
            "SPLIT",
            "GATHER",
            "PACK",
        ]
    )
    axis = m.below(rank)
    if op == "RESHAPE":
        sizes = [-1, prod(x.shape[1:])] if m.chance(0.7) else list(x.shape[::-1])
        shape = (x.shape[0], prod(x.shape[1:])) if sizes[0] == -1 else x.shape[::-1]
        m.add(op, [x, m.constant(sizes, _I32)], x._replace(shape=shape), o.ReshapeOptions())
    elif op == "TRANSPOSE":
        order = m.random.permutation(rank)
        m.add(op, [x, m.constant(order, _I32)], x._replace(shape=tuple(x.shape[i] for i in order)), o.TransposeOptions())
    elif op == "CONCATENATION":
        y = m.some(lambda v: v[1:3] == x[1:3] and v.scale == x.scale) or x
        shape = tuple(size * 2 if i == axis else size for i, size in enumerate(x.shape))
        m.add(
            op,
            [x, y],
            x._replace(shape=shape, exact=x.exact and y.exact, large=max(x.large, y.large)),
            o.ConcatenationOptions(axis=axis),
        )
    elif op == "PAD":
        pads = m.random.integers(0, 3, (rank, 2)) * (np.arange(rank) > 0)[:, None]
        if rank == 4:
            pads[3] = 0
        shape = tuple(int(size + sum(pair)) for size, pair in zip(x.shape, pads))
        m.add(op, [x, m.constant(pads, _I32)], x._replace(shape=shape), o.PadOptions())
    elif op == "STRIDED_SLICE":
        begin = [m.below(size) if i else 0 for i, size in enumerate(x.shape)]
        ends = list(x.shape)
        given = [m.constant(each, _I32) for each in (begin, ends, [1] * rank)]
        shape = tuple(end - start for start, end in zip(begin, ends))
        m.add(op, [x, *given], x._replace(shape=shape), o.StridedSliceOptions(end_mask=1))
    elif op == "SLICE":
        begin = [m.below(size) if i else 0 for i, size in enumerate(x.shape)]
        sizes = [-1 if m.chance(0.7) else size - start for start, size in zip(begin, x.shape)]
        shape = tuple(size - start for start, size in zip(begin, x.shape))
        m.add(op, [x, m.constant(begin, _I32), m.constant(sizes, _I32)], x._replace(shape=shape), o.SliceOptions())
    elif op == "EXPAND_DIMS" and rank < 4:
        at = m.below(rank + 1)
        m.add(op, [x, m.constant(at, _I32)], x._replace(shape=(*x.shape[:at], 1, *x.shape[at:])), o.ExpandDimsOptions())
    elif op == "TILE" and x.dtype != _I8:
        times = [1 + (m.chance(0.3)) for _ in x.shape]
        shape = tuple(size * factor for size, factor in zip(x.shape, times))
        m.add(op, [x, m.constant(times, _I32)], x._replace(shape=shape), o.TileOptions())
    elif op == "SPLIT" and x.shape[axis] % 2 == 0:
        shape = tuple(size // 2 if i == axis else size for i, size in enumerate(x.shape))
        more: dict[str, Any] = {"scale": [x.scale], "zero_point": [0]} if x.scale else {}
        made = [m.graph.add_tensor("t", x.dtype, list(shape), **more) for _ in range(2)]
        m.graph.add_operator(op, [m.constant(axis, _I32), x.index], made, o.SplitOptions(num_splits=2))
        m.values += [x._replace(index=index, shape=shape) for index in made]
    elif op == "GATHER":
        picks = m.random.integers(0, x.shape[axis], 1 + m.below(3))
        shape = (*x.shape[:axis], len(picks), *x.shape[axis + 1 :])
        m.add(op, [x, m.constant(picks, _I32)], x._replace(shape=shape), o.GatherOptions(axis=axis))
    elif op == "PACK" and rank < 4:
        m.add(op, [x, x], x._replace(shape=(2, *x.shape)), o.PackOptions(values_count=2, axis=0))


def _reduction(m: Maker) -> None:
    x = m.some(lambda v: _float(v) and bool(v.shape))
    if x is None:
        return
    op = m.pick(["MEAN", "SUM", "REDUCE_MAX", "SOFTMAX", "LOG_SOFTMAX", "CUMSUM"])
    axis = m.below(len(x.shape))
    if op == "SOFTMAX":
        m.add(op, [x], x._replace(exact=False, large=0), o.SoftmaxOptions(beta=1.0))
    elif op == "LOG_SOFTMAX":
        m.add(op, [x], x._replace(exact=False), o.LogSoftmaxOptions())
    elif op == "CUMSUM":
        m.add(op, [x, m.constant(axis, _I32)], x._replace(exact=False, large=x.large + 1), o.CumsumOptions())
    else:
        keep = m.chance(0.5)
        shape = (*x.shape[:axis], *([1] if keep else []), *x.shape[axis + 1 :])
        out = x._replace(shape=shape, exact=x.exact and op == "REDUCE_MAX", large=x.large + (op == "SUM"))
        m.add(op, [x, m.constant([axis], _I32)], out, o.ReducerOptions(keep_dims=keep))


def _layer(m: Maker) -> None:
    x = m.some(lambda v: v.dtype in (_F32, _I8) and len(v.shape) in (2, 4))
    if x is None:
        return
    quantized = x.dtype == _I8
    deep, units = x.shape[-1], m.pick([1, 3, 4, 8])
    scale = 0.0625

    def weights(*shape: int) -> int:
        if quantized:
            return m.constant(m.random.integers(-20, 21, shape), _I8, scale=[scale], zero_point=[0])
        return m.constant(m.numbers(*shape) / 4, _F32)

    def bias(count: int) -> int:
        if quantized:
            return m.constant(m.random.integers(-99, 99, count), _I32, scale=[x.scale * scale], zero_point=[0])
        return m.constant(m.numbers(count), _F32)

    act = m.activation()
    out = x._replace(exact=quantized, scale=x.scale and 0.25, large=x.large + 1)
    if len(x.shape) == 2:
        options = o.FullyConnectedOptions(fused_activation_function=act, keep_num_dims=False)
        m.add("FULLY_CONNECTED", [x, weights(units, deep), bias(units)], out._replace(shape=(x.shape[0], units)), options)
        return
    size, stride, padding = m.pick([1, 2, 3]), m.pick([1, 1, 2]), m.pick([Padding.SAME, Padding.VALID])
    if padding == Padding.VALID:
        room = [(each - size) // stride + 1 for each in x.shape[1:3]]
    else:
        room = [-(-each // stride) for each in x.shape[1:3]]
    if min(room) < 1:
        return
    op = m.pick(["CONV_2D", "DEPTHWISE_CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D"])
    more: Any = {"stride_h": stride, "stride_w": stride, "padding": padding, "fused_activation_function": act}
    if op == "CONV_2D":
        m.add(
            op,
            [x, weights(units, size, size, deep), bias(units)],
            out._replace(shape=(x.shape[0], *room, units)),
            o.Conv2DOptions(**more),
        )
    elif op == "DEPTHWISE_CONV_2D":
        options = o.DepthwiseConv2DOptions(depth_multiplier=1, **more)
        m.add(op, [x, weights(1, size, size, deep), bias(deep)], out._replace(shape=(x.shape[0], *room, deep)), options)
    else:
        exact = x.exact and (quantized or op == "MAX_POOL_2D")
        pool = o.Pool2DOptions(filter_height=size, filter_width=size, **more)
        m.add(op, [x], x._replace(shape=(x.shape[0], *room, deep), exact=exact), pool)


def _quantized(m: Maker) -> None:
    x = m.some(lambda v: v.dtype == _I8)
    if x is None or m.chance(0.3):
        y = m.some(lambda v: _float(v) and v.exact)
        if y is not None:
            m.add("QUANTIZE", [y], y._replace(dtype=_I8, scale=m.pick([0.125, 0.25]), large=0), o.QuantizeOptions())
        return
    op = m.pick(["DEQUANTIZE", "ADD", "MUL", "TANH", "LOGISTIC", "RELU", "MEAN", "SOFTMAX"])
    if op == "DEQUANTIZE":
        m.add(op, [x], x._replace(dtype=_F32, scale=0.0), o.DequantizeOptions())
    elif op in ("ADD", "MUL"):
        y = m.some(lambda v: v[1:3] == x[1:3]) or x
        kind: Any = o.AddOptions if op == "ADD" else o.MulOptions
        m.add(op, [x, y], x._replace(scale=0.25), kind(fused_activation_function=m.activation()))
    elif op == "MEAN":
        if x.shape:
            axis = m.below(len(x.shape))
            shape = (*x.shape[:axis], *x.shape[axis + 1 :])
            m.add(op, [x, m.constant([axis], _I32)], x._replace(shape=shape), o.ReducerOptions(keep_dims=False))
    elif op == "RELU":
        m.add(op, [x], x)
    elif op == "TANH":
        m.add(op, [x], x._replace(scale=1 / 128))
    elif x.shape:
        # their zero point is -128, which `add` does not write
        m.add("RELU6", [x], x)


def _discrete(m: Maker) -> None:
    x = m.some(lambda v: _float(v) and v.exact and bool(v.shape))
    if x is None:
        return
    op = m.pick(["LESS", "GREATER", "SELECT_V2", "CAST", "TOPK_V2", "INT"])
    if op in ("LESS", "GREATER"):
        options: Any = o.LessOptions() if op == "LESS" else o.GreaterOptions()
        m.add(op, [x, m.constant(m.numbers(), _F32)], x._replace(dtype=_BOOL, large=0), options)
    elif op == "SELECT_V2":
        chosen = m.some(lambda v: v.dtype == _BOOL and v.shape == x.shape)
        if chosen is not None:
            m.add(op, [chosen, x, m.constant(m.numbers(), _F32)], x, o.SelectV2Options())
    elif op == "CAST" and not x.large:
        types = o.CastOptions(in_data_type=TensorType.FLOAT32, out_data_type=TensorType.INT32)
        m.add(op, [x], x._replace(dtype=_I32), types)
    elif op == "TOPK_V2":
        k = 1 + m.below(x.shape[-1])
        shape = (*x.shape[:-1], k)
        made = [m.graph.add_tensor("t", dtype, list(shape)) for dtype in (_F32, _I32)]
        m.graph.add_operator(op, [x.index, m.constant(k, _I32)], made, o.TopKV2Options())
        m.values += [x._replace(index=made[0], shape=shape), Value(made[1], _I32, shape)]
    else:
        y = m.some(lambda v: v.dtype == _I32)
        if y is not None and not y.large:
            m.add("ADD", [y, m.constant(m.below(9), _I32)], y, o.AddOptions())


def _variable(m: Maker, name: str) -> None:
    x = m.some(lambda v: _float(v) and bool(v.shape))
    if x is None or x.large > 3:
        return
    handle = m.graph.add_tensor("h", TensorType.RESOURCE, [])
    m.graph.add_operator("VAR_HANDLE", [], [handle], o.VarHandleOptions(shared_name=name, container=""))
    if m.chance(0.5):
        m.graph.add_operator("ASSIGN_VARIABLE", [handle, x.index], [], o.AssignVariableOptions())
        m.add("READ_VARIABLE", [handle], x, o.ReadVariableOptions())
    else:  # refused in the first run, or the value of the last one
        m.add("READ_VARIABLE", [handle], x._replace(exact=False), o.ReadVariableOptions())
        m.graph.add_operator("ASSIGN_VARIABLE", [handle, x.index], [], o.AssignVariableOptions())


_KINDS = (
    (_elementwise, 5), (_binary, 5), (_shaping, 5), (_reduction, 2), (_layer, 4), (_quantized, 3), (_discrete, 3),
)  # fmt: skip
_FLAT = [kind for kind, weight in _KINDS for _ in range(weight)]


def _grow(m: Maker, nodes: int) -> None:
    for _ in range(nodes):
        m.pick(_FLAT + WIDER * m.wide)(m)
        while m.values and prod(m.values[-1].shape) > _MOST:
            m.values.pop()


def _branch(random: np.random.Generator, builder: ModelBuilder, x: Value) -> int:
    """A subgraph from the shape of x to the same: the number of the branch."""
    graph = builder.add_subgraph("branch")
    index = graph.add_tensor("x", x.dtype, list(x.shape))
    maker = Maker(random, graph, [x._replace(index=index, exact=False)])
    for _ in range(1 + maker.below(4)):
        maker.pick([_elementwise, _binary])(maker)
    graph.set_inputs(index)
    graph.set_outputs(maker.values[-1].index)
    return int(graph.index)


def _control(m: Maker, builder: ModelBuilder, calls: list[Callable[[], None]]) -> None:
    """IF by a bool that a run decides, or WHILE of a few rounds; the subgraphs are made after all nodes."""
    x = m.some(lambda v: _float(v) and v.shape != () and v.large < 3)
    seen = m.some(lambda v: _float(v) and v.exact)
    if x is None or seen is None:
        return
    if m.chance(0.5):
        axes = m.constant(list(range(len(seen.shape))), _I32)
        most = (
            m.add("REDUCE_MAX", [seen, axes], seen._replace(shape=()), o.ReducerOptions(keep_dims=False)) if seen.shape else seen
        )
        flag = m.add("LESS", [most, m.constant(m.numbers(), _F32)], Value(0, _BOOL, ()), o.LessOptions())
        options = o.IfOptions()
        m.add("IF", [flag, x], x._replace(exact=False, large=x.large + 2), options)

        def branches() -> None:
            options.then_subgraph_index = _branch(m.random, builder, x)
            options.else_subgraph_index = _branch(m.random, builder, x)

        calls.append(branches)
        return
    rounds = m.below(4)
    options_of_loop = o.WhileOptions()
    start = m.constant(0, _I32)
    out = [m.graph.add_tensor("t", _I32, []), m.graph.add_tensor("t", _F32, list(x.shape))]
    m.graph.add_operator("WHILE", [start, x.index], out, options_of_loop)
    m.values.append(x._replace(index=out[1], exact=False, large=x.large + 2))

    def loop() -> None:
        condition = builder.add_subgraph("condition")
        n, y = condition.add_tensor("n", _I32, []), condition.add_tensor("y", _F32, list(x.shape))
        most = condition.add_tensor("most", _I32, [], data=np.array(rounds, np.int32))
        flag = condition.add_tensor("flag", "bool", [])
        condition.add_operator("LESS", [n, most], [flag], o.LessOptions())
        condition.set_inputs(n, y)
        condition.set_outputs(flag)
        body = builder.add_subgraph("body")
        n, y = body.add_tensor("n", _I32, []), body.add_tensor("y", _F32, list(x.shape))
        more = body.add_tensor("more", _I32, [])
        body.add_operator("ADD", [n, body.add_tensor("one", _I32, [], data=np.array(1, np.int32))], [more], o.AddOptions())
        inner = Maker(m.random, body, [x._replace(index=y, exact=False)])
        for _ in range(1 + inner.below(3)):
            inner.pick([_elementwise, _binary])(inner)
        last = inner.add("TANH", [inner.values[-1]], inner.values[-1])
        body.set_inputs(n, y)
        body.set_outputs(more, last.index)
        options_of_loop.cond_subgraph_index, options_of_loop.body_subgraph_index = int(condition.index), int(body.index)

    calls.append(loop)


_SHAPES = ((2, 6), (1, 8), (3, 4, 4), (1, 6, 6, 4), (2, 5, 5, 3), (1, 8, 8, 8), (4,))


def generate(seed: int) -> Made:
    """Return the model of a number, and what is done with it; every third is a wide one."""
    random = np.random.default_rng(seed)
    builder = ModelBuilder()
    calls: list[Callable[[], None]] = []
    outer = Maker(random, builder.add_subgraph("main"), [], wide=seed % 3 == 2)
    exact, inputs = _main(outer, builder, calls, controls=outer.chance(0.3), variables=outer.chance(0.15))
    signatures = []
    graphs = [outer.graph]
    if outer.chance(0.15):
        second = Maker(random, builder.add_subgraph("second"), [], wide=outer.wide)
        _main(second, builder, calls, controls=False, variables=False)
        graphs.append(second.graph)
    for call in calls:
        call()
    if len(graphs) > 1 or outer.chance(0.3):
        for number, graph in enumerate(graphs):
            given, made = (np.asarray(each).tolist() for each in (graph.table.inputs, graph.table.outputs))
            name = f"sign{number}"
            builder.add_signature(
                name, {f"i{n}": t for n, t in enumerate(given)}, {f"o{n}": t for n, t in enumerate(dict.fromkeys(made))}, graph
            )
            signatures.append(name)
    return Made(builder.to_bytes(), _steps(outer, inputs, signatures), exact, signatures)


def _main(
    m: Maker, builder: ModelBuilder, calls: list[Callable[[], None]], *, controls: bool, variables: bool
) -> tuple[list[bool], list[Value]]:
    """Make a subgraph that a caller runs: which of its outputs are exact, and its inputs."""
    inputs = []
    for _ in range(1 + m.below(2)):
        shape = m.pick(_SHAPES)
        index = m.graph.add_tensor("x", _F32, list(shape), shape_signature=[-1, *shape[1:]])
        inputs.append(Value(index, _F32, shape))
    m.values += inputs
    for _ in range(1 + m.below(3)):
        _grow(m, 2 + m.below(8))
        if controls and m.chance(0.6):
            _control(m, builder, calls)
        if variables:
            _variable(m, "v")
    made = [value for value in m.values if value not in inputs]
    read = [made[-1 - m.below(min(4, len(made)))] for _ in range(1 + m.below(2))] if made else inputs[:1]
    read = list(dict.fromkeys(read))
    m.graph.set_inputs(*(value.index for value in inputs))
    m.graph.set_outputs(*(value.index for value in read))
    return [value.exact for value in read], inputs


def _steps(m: Maker, inputs: list[Value], signatures: list[str]) -> list[Step]:
    def feed() -> list[Step]:
        return [Step("feed", m.below(1 << 30)), Step("invoke")]

    steps = [Step("allocate"), *feed(), *feed()]
    for _ in range(m.below(3)):
        what = m.pick(["resize", "resize", "refused", "set", "reset", "sign"])
        if what == "resize":
            rows = m.below(5) if m.wide else 1 + m.below(5)
            shapes = tuple((rows if m.chance(0.9) else rows + 1, *value.shape[1:]) for value in inputs)
            steps += [Step("resize", shapes=shapes), Step("allocate"), *feed()]
        elif what == "refused":
            shapes = tuple(tuple(1 + m.below(5) for _ in range(1 + m.below(4))) for _ in inputs)
            steps += [Step("resize", shapes=shapes), Step("allocate"), *feed()]
            steps += [Step("resize", shapes=tuple(value.shape for value in inputs)), Step("allocate"), *feed()]
        elif what == "set" and m.inner:
            steps += [Step("set", m.below(1 << 30), place=m.pick(m.inner)), *feed()]
        elif what == "reset":
            steps += [Step("reset"), *feed()]
        elif what == "sign" and signatures:
            place = m.below(len(signatures))
            if m.wide and not place and m.chance(0.5):
                rows = 1 + m.below(5)
                steps += [Step("sign", m.below(1 << 30), tuple((rows, *value.shape[1:]) for value in inputs), place)]
            steps += [Step("sign", m.below(1 << 30), place=place), *feed()]
    return steps
