"""Control flow, and what outlives an invoke: variables and tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import ModelBuilder, TensorType
from oplet.model.builders.model_builder import SubgraphBuilder
from oplet.schema.options import (
    AddOptions,
    AssignVariableOptions,
    CallOnceOptions,
    ConcatenationOptions,
    HashtableFindOptions,
    HashtableImportOptions,
    HashtableOptions,
    HashtableSizeOptions,
    IfOptions,
    MulOptions,
    ReadVariableOptions,
    SubOptions,
    VarHandleOptions,
    WhileOptions,
)  # fmt: skip
from oplet.schema.stablehlo_options import StablehloCaseOptions, StableHLOCompositeOptions
from oplet.schema.table import Table

from ..harness import Case
from ..strategies import BOOL, F32, I32, I64, STRING, Draw, Shape, spec
from .graphs import case, chain

_BINARY: tuple[tuple[str, Table | None], ...] = (("ADD", AddOptions()), ("MUL", MulOptions()), ("SUB", SubOptions()))
RESOURCE = TensorType.RESOURCE


def _branch(draw: Draw, graph: SubgraphBuilder, type: TensorType, shapes: tuple[Shape, Shape], grow: bool) -> None:
    """A subgraph of two inputs and one output: some arithmetic, or a join, whose shape differs from branch to branch."""
    if grow:
        a, b = (graph.add_tensor(name, type, shape) for name, shape in zip("ab", shapes))
        result = graph.add_tensor("joined", type, (1,) * len(shapes[0]))
        graph.set_inputs(a, b)
        graph.add_operator("CONCATENATION", [a, *[b] * draw.integer(1, 2)], [result], ConcatenationOptions(axis=0))
        graph.set_outputs(result)
        return
    nodes: list[tuple[str, list[int], Table | None]] = []
    for position in range(draw.integer(1, 3)):
        op, options = draw.pick(*_BINARY)
        nodes.append((op, [draw.integer(0, 1 + position), draw.integer(0, 1 + position)], options))
    made = chain(graph, [(type, shapes[0]), (type, shapes[1])], nodes)
    graph.set_outputs(made[-1] if not draw.seldom(6) else made[0])


def _choice(draw: Draw, selector: TensorType, op: str, branches: int, options: Callable[[list[int]], Table]) -> Case:
    """A node that runs one of several subgraphs on two tensors."""
    type, shape = draw.pick(F32, I32), draw.shape(1, 3, 3, empty=False)
    grow = draw.seldom(3)
    builder = ModelBuilder()
    main = builder.add_subgraph()
    low, high = (0, 1) if selector is BOOL else (-1, branches)
    which = draw.tensor(selector, draw.pick((), (1,)) if not draw.seldom(15) else (2,), low, high, constant=False)
    if draw.seldom():
        which.constant = True
    x, y = (draw.tensor(type, shape, -50, 50, constant=False) for _ in range(2))
    indices = [main.add_tensor("which", selector, which.shape, data=which.values() if which.constant else None)]
    indices += [main.add_tensor(name, type, shape) for name in "xy"]
    result = main.add_tensor("z", type, (1,) * len(shape) if grow else shape)
    fed = [arg for arg in (which, x, y) if not arg.constant]
    main.set_inputs(*indices[3 - len(fed) :])
    main.set_outputs(result)
    numbers = list(range(1, branches + 1))
    if draw.seldom(25):
        numbers[-1] = draw.pick(branches + 1, 0, -1)
    main.add_operator(op, indices, [result], options(numbers))
    for number in range(branches):
        _branch(draw, builder.add_subgraph(f"branch {number}"), type, (shape, shape), grow)
    return case(draw, builder, fed, f"{which} {x} branches {numbers} grow {grow}", steps=3)


@spec("IF", weight=2)
def if_(draw: Draw) -> Case:
    return _choice(draw, BOOL, "IF", 2, lambda n: IfOptions(then_subgraph_index=n[0], else_subgraph_index=n[1]))


@spec("STABLEHLO_CASE", weight=2)
def stablehlo_case(draw: Draw) -> Case:
    count = draw.integer(1, 3)
    return _choice(draw, I32, "STABLEHLO_CASE", count, lambda n: StablehloCaseOptions(branch_subgraph_indices=n))


@spec("STABLEHLO_COMPOSITE")
def stablehlo_composite(draw: Draw) -> Case:
    type, shape = draw.pick(F32, I32), draw.shape(1, 3, 3, empty=False)
    builder = ModelBuilder()
    main = builder.add_subgraph()
    grow = draw.seldom(3)
    x, y = (draw.tensor(type, shape, -50, 50, constant=False) for _ in range(2))
    a, b, c = (main.add_tensor(name, type, (1,) * len(shape) if grow and name == "c" else shape) for name in "abc")
    main.set_inputs(a, b)
    main.set_outputs(c)
    index = 1 if not draw.seldom(20) else 7
    # An empty flexbuffer map: LiteRT wants attributes even where there are none.
    attributes = np.frombuffer(bytes([0, 1, 0, 0x24, 1]), np.uint8) if not draw.seldom() else None
    options = StableHLOCompositeOptions(name="f", decomposition_subgraph_index=index, composite_attributes=attributes)
    main.add_operator("STABLEHLO_COMPOSITE", [a, b], [c], options)
    _branch(draw, builder.add_subgraph("f"), type, (shape, shape), grow)
    return case(draw, builder, [x, y], f"{x} {y} subgraph {index} grow {grow}")


@spec("WHILE", weight=2)
def while_(draw: Draw) -> Case:
    """Counts to a limit; the other loop variable is computed on, or grows at each turn."""
    type, shape = draw.pick(F32, I32), draw.shape(1, 3, 3, empty=False)
    grow, nested = draw.seldom(3), draw.seldom(4)
    builder = ModelBuilder()
    main, condition, body = (builder.add_subgraph(name) for name in ("main", "condition", "body"))
    counter = draw.tensor(I32, draw.pick((), (1,)), 0, 5, constant=False)
    value = draw.tensor(type, shape, -3, 3, constant=False)
    inner = (-1,) * len(shape)

    def pair(graph: SubgraphBuilder, suffix: str = "") -> tuple[int, int]:
        i = graph.add_tensor("i" + suffix, I32, counter.shape)
        signature = inner if grow else None
        return i, graph.add_tensor("v" + suffix, type, shape, shape_signature=signature)

    inputs, outputs = pair(main), pair(main, "_out")
    main.set_inputs(*inputs)
    main.set_outputs(*outputs)
    main.add_operator("WHILE", inputs, outputs, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))

    i, v = pair(condition)
    limit = condition.add_tensor("limit", I32, (), data=np.int32(draw.integer(0, 5)))
    more = condition.add_tensor("more", BOOL, counter.shape)
    condition.set_inputs(i, v)
    condition.set_outputs(more)
    condition.add_operator("LESS", [i, limit], [more])

    i, v = pair(body)
    next_i, next_v = pair(body, "_next")
    one = body.add_tensor("one", I32, (), data=np.int32(1))
    body.set_inputs(i, v)
    body.set_outputs(next_i, next_v)
    body.add_operator("ADD", [i, one], [next_i], AddOptions())
    if nested and not grow:
        flag = body.add_tensor("flag", BOOL, counter.shape)
        body.add_operator("EQUAL", [i, one], [flag])
        body.add_operator("IF", [flag, v, v], [next_v], IfOptions(then_subgraph_index=3, else_subgraph_index=4))
        for name in ("then", "else"):
            _branch(draw, builder.add_subgraph(name), type, (shape, shape), False)
    elif grow:
        body.add_operator("CONCATENATION", [v, v], [next_v], ConcatenationOptions(axis=0))
    else:
        op, options = draw.pick(*_BINARY)
        body.add_operator(op, [v, v], [next_v], options)
    return case(draw, builder, [counter, value], f"{counter} {value} grow {grow} nested {nested}", steps=3)


@spec("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")
def variables(draw: Draw) -> Case:
    """A variable that a subgraph called once gives its first value; each invoke reads it, adds and writes it back."""
    type, shape = draw.pick(F32, I32, I64), draw.shape(0, 3, 3, empty=False)
    builder = ModelBuilder()
    main, start = builder.add_subgraph(), builder.add_subgraph("start")
    x = draw.tensor(type, shape, -50, 50, constant=False)
    initialized = not draw.seldom(4)
    names = VarHandleOptions(container=draw.pick("", "c"), shared_name="v")

    def handle(graph: SubgraphBuilder, options: VarHandleOptions = names) -> int:
        index = graph.add_tensor("handle", RESOURCE, ())
        graph.add_operator("VAR_HANDLE", [], [index], options)
        return index

    given = main.add_tensor("x", type, shape)
    before, after = main.add_tensor("before", type, shape), main.add_tensor("after", type, shape)
    main.set_inputs(given)
    main.set_outputs(before, after)
    if initialized:
        main.add_operator("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1 if not draw.seldom(20) else 5))
    variable = handle(main)
    if not initialized and draw.flag():  # read before it was ever written
        main.add_operator("ASSIGN_VARIABLE", [variable, given], [], AssignVariableOptions())
    other = VarHandleOptions(container=names.container, shared_name="w")
    source = handle(main, other) if draw.seldom() else variable
    main.add_operator("READ_VARIABLE", [source], [before], ReadVariableOptions())
    main.add_operator("ADD", [before, given], [after], AddOptions())
    main.add_operator("ASSIGN_VARIABLE", [variable, after], [], AssignVariableOptions())

    first = start.add_tensor("first", type, shape, data=draw.values(type, shape, -9, 9))
    start.set_inputs()
    start.set_outputs()
    start.add_operator("ASSIGN_VARIABLE", [handle(start), first], [], AssignVariableOptions())
    return case(draw, builder, [x], f"{x} initialized {initialized} {names}", steps=3)


@spec("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE")
def hashtables(draw: Draw) -> Case:
    """A table that is filled once and asked at each invoke."""
    key, value = draw.pick((I64, STRING), (STRING, I64))
    if draw.seldom(8):
        key, value = draw.pick((I64, F32), (STRING, STRING), (I64, I64), (I32, STRING))
    builder = ModelBuilder()
    main, start = builder.add_subgraph(), builder.add_subgraph("start")
    options = HashtableOptions(table_id=draw.pick(1, 7), key_dtype=key, value_dtype=value)
    count = draw.integer(0, 4)
    keys, values = draw.values(key, (count,), 0, 6), draw.values(value, (count,))

    def table(graph: SubgraphBuilder) -> int:
        index = graph.add_tensor("table", RESOURCE, (1,))
        graph.add_operator("HASHTABLE", [], [index], options)
        return index

    wanted = draw.tensor(key, (draw.integer(1, 4),), 0, 8, constant=False)
    query = main.add_tensor("query", key, wanted.shape)
    default = main.add_tensor("default", value, (), data=draw.values(value, (1,)).reshape(()))
    found, size = main.add_tensor("found", value, wanted.shape), main.add_tensor("size", I64, (1,))
    main.set_inputs(query)
    main.set_outputs(found, size)
    if not draw.seldom():
        main.add_operator("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    handle = table(main)
    main.add_operator("HASHTABLE_FIND", [handle, query, default], [found], HashtableFindOptions())
    main.add_operator("HASHTABLE_SIZE", [handle], [size], HashtableSizeOptions())

    start.set_inputs()
    start.set_outputs()
    own = table(start)
    given = [start.add_tensor(name, t, (count,), data=d) for name, t, d in (("keys", key, keys), ("values", value, values))]
    start.add_operator("HASHTABLE_IMPORT", [own, *given], [], HashtableImportOptions())
    return case(draw, builder, [wanted], f"{key} {value} {keys} {values} {options}", steps=2)
