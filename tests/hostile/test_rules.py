"""Files that are well-formed and break a rule of the format: refused while loading, before the first op is created."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.model.builders.sparsity import sparsify
from oplet.schema import tables
from oplet.schema.options import AddOptions, CallOnceOptions, IfOptions, WhileOptions
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec, one_op_model

from .harness import Bad, base, edited, i32, main, noted, refusal

X = Spec("float32", [2])
HERE = "test_rules"


def changed(change: Callable[[tables.Model], None]) -> Callable[[], bytes]:
    return lambda: base(change)


def setting(get: Callable[[tables.Model], Any], **values: Any) -> Callable[[], bytes]:
    """The base model with fields of one of its tables set."""

    def change(root: tables.Model) -> None:
        for name, value in values.items():
            setattr(get(root), name, value)

    return lambda: base(change)


def model(root: tables.Model) -> tables.Model:
    return root


def node(root: tables.Model) -> Any:
    return main(root).operators[0]


def code(root: tables.Model) -> Any:
    return (root.operator_codes or [])[0]


def tensor(index: int) -> Callable[[tables.Model], Any]:
    return lambda root: main(root).tensors[index]


def quantized(scale: list[float], zero_point: list[int], dimension: int = 0) -> Callable[[], bytes]:
    table = tables.QuantizationParameters(
        scale=np.array(scale, np.float32), zero_point=np.array(zero_point, np.int64), quantized_dimension=dimension
    )
    return setting(tensor(0), type=9, quantization=table)


def two_nodes(first: tuple[str, str], second: tuple[str, str]) -> Callable[[], bytes]:
    """Two ADD nodes over tensors a (the input), b, c, d; the graph's output is d."""

    def make() -> bytes:
        graph = Graph(
            dict.fromkeys("abcd", X), "a", "d", [Op("ADD", "a a", "b", AddOptions()), Op("ADD", "b a", "d", AddOptions())]
        )

        def change(root: tables.Model) -> None:
            for operator, (inputs, outputs) in zip(main(root).operators, (first, second)):
                operator.inputs, operator.outputs = (i32(*map("abcd".index, names)) for names in (inputs, outputs))

        return edited(graph_model(graph), change)

    return make


def sparse(change: Callable[[Any], None]) -> Callable[[], bytes]:
    """A DENSIFY of a 2x3 matrix stored by rows, whose metadata were changed."""

    def make() -> bytes:
        values, sparsity = sparsify(np.array([[0, 5, 0], [1, 0, 2]], np.float32))
        data = one_op_model(
            "DENSIFY", [Spec("float32", [2, 3], data=values, sparsity=sparsity)], [Spec("float32", [2, 3])]
        )  # fmt: skip
        return edited(data, lambda root: change(main(root).tensors[0].sparsity))

    return make


def strings(raw: list[int]) -> Callable[[], bytes]:
    """A GATHER from two strings, whose buffer is these numbers."""

    def make() -> bytes:
        words = Spec("str", [2], data=np.array([b"ab", b"c"], object))
        data = one_op_model("GATHER", [words, np.array([1], np.int32)], [Spec("str", [1])])

        def change(root: tables.Model) -> None:
            (root.buffers or [])[main(root).tensors[0].buffer].data = np.array(raw, np.int32).view(np.uint8)

        return edited(data, change)

    return make


def blockwise(**values: int) -> Callable[[], bytes]:
    details = tables.BlockwiseQuantization(**{"scales": 1, "zero_points": -1, "block_size": 32, **values})
    return setting(tensor(0), quantization=tables.QuantizationParameters(details=details))


C, BODY = Spec("bool", []), Graph({"v": X}, "v", "v", name="body")


def calling(*graphs: Graph) -> Callable[[], bytes]:
    return lambda: graph_model(*graphs)


def calls_while(cond: int, body: int, name: str) -> Graph:
    options = WhileOptions(cond_subgraph_index=cond, body_subgraph_index=body)
    return Graph({"a": X, "o": X}, "a", "o", [Op("WHILE", "a", "o", options)], name)


def calls_if(then: int, other: int, name: str) -> Graph:
    options = IfOptions(then_subgraph_index=then, else_subgraph_index=other)
    return Graph({"c": C, "a": X, "o": X}, "c a", "o", [Op("IF", "c a", "o", options)], name)


def calls_once(init: int, name: str) -> Graph:
    return Graph({"a": X}, "a", "a", [Op("CALL_ONCE", options=CallOnceOptions(init_subgraph_index=init))], name)


def signature(**values: Any) -> Callable[[], bytes]:
    fields = {"signature_key": "serve", "subgraph_index": 0, **values}
    return setting(model, signature_defs=[tables.SignatureDef(**fields)])


def maps(*entries: tuple[str | None, int]) -> list[tables.TensorMap]:
    return [tables.TensorMap(name=name, tensor_index=index) for name, index in entries]


def custom_without_name(root: tables.Model) -> None:
    code(root).builtin_code, code(root).deprecated_builtin_code, code(root).custom_code = 32, 32, ""
    node(root).builtin_options = None


def op_code(number: int) -> Callable[[], bytes]:
    return setting(code, builtin_code=number, deprecated_builtin_code=127)


CASES = [
    Bad("no subgraphs vector", (7, "class 17"), "No subgraph in the model", setting(model, subgraphs=None)),
    Bad("zero subgraphs", (8,), "No subgraph in the model", setting(model, subgraphs=[])),
    Bad("no buffers vector", (9,), "No buffers in the model", setting(model, buffers=None)),
    Bad("no tensors", (10,), "Did not get tensors in subgraph 0", setting(main, tensors=None)),
    Bad("no operators", (10,), r"Output tensor 2 lacks data.*output_0.*no operators at all", setting(main, operators=None)),
    Bad("no operator codes", (11,), "opcode_index 0. Node 0 of .* has 0 operator codes", setting(model, operator_codes=None)),
    Bad("opcode index", (11,), "opcode_index 7. Node 0 of .* has 1 operator codes", setting(node, opcode_index=7)),
    Bad("schema version", (12,), "schema version 2 not equal to supported version 3", setting(model, version=2)),
    Bad("op version 99", (13,), "ADD.* '99'.*no release .*oplet-(builtin|compiled)-ops.* versions 1 to", setting(code, version=99)),
    Bad("op version 0", (13,), "ADD.* version '0'.*Node 0 needs it, and versions begin at 1", setting(code, version=0)),
    Bad("op version -1", (13,), "ADD.* version '-1'.*versions begin at 1", setting(code, version=-1)),
    Bad("builtin code", (14,), r"out of range: 5000\..*Operator code 0.*highest is 2\d\d.*node 0 of subgraph 0", op_code(5000)),
    Bad("custom without a name", (15,), "no custom_code. It is operator code 0. Used by node 0", changed(custom_without_name)),
    Bad("type 100", (17,), r"data type 100 in tensor. Tensor 0 \('input_0'\).* types go from 0 to", setting(tensor(0), type=100)),
    Bad("type -1", (17,), "data type -1 in tensor. Tensor 0", setting(tensor(0), type=-1)),
    Bad("input 99", (18,), r"Node 0 \(ADD\) .*input 0 at tensor 99; the subgraph has 3", setting(node, inputs=i32(99, 1))),
    Bad("input -2", (18,), r"Node 0 \(ADD\) .*input 1 at tensor -2", setting(node, inputs=i32(0, -2))),
    Bad("output -1", (18,), r"Node 0 \(ADD\) .*output 0 at tensor -1", setting(node, outputs=i32(-1))),
    Bad("intermediate 9", (18,), r"Node 0 \(ADD\) .*intermediate at tensor 9", setting(node, intermediates=i32(9))),
    Bad("graph output 77", (18,), "output 0 at tensor 77; it has 3", setting(main, outputs=i32(77))),
    Bad("graph input -1", (18,), "input 0 at tensor -1; it has 3", setting(main, inputs=i32(-1))),
    Bad("output is input", (22, "class 4"), "both input and output", setting(node, inputs=i32(1, 2), outputs=i32(2))),
    Bad("output is graph input", (22, "class 4"), "both input and output", setting(node, outputs=i32(0))),
    Bad("output is a constant that it reads", (23, "class 3"), "Tensor 1 is both input and output", setting(node, outputs=i32(1))),
    Bad("cycle", (24,), r"cycle, node 0 \(ADD\) reads from node 1 \(ADD\) reads from node 0", two_nodes(("ca", "b"), ("ba", "c"))),
    Bad("node reads itself", (24,), "Tensor 1 is both input and output", two_nodes(("ba", "b"), ("ba", "d"))),
    Bad("out of order", (24,), "node 1 writes only later: the graph is out of order", two_nodes(("ca", "d"), ("aa", "c"))),
    Bad("never written", (25,), r"Input tensor 2 lacks data. Node 0 \(ADD\).*\('c'\)", two_nodes(("ca", "b"), ("ba", "d"))),
    Bad("two writers", (26,), r"Node 1 \(ADD\).*writes tensor 1.*Node 0 \(ADD\).*already", two_nodes(("aa", "b"), ("aa", "b"))),
    Bad("buffer too small", (27,), r"Tensor 1 \('input_1'\).* requires 4000 bytes.*has 8", setting(tensor(1), shape=i32(1000))),
    Bad("buffer index", (27,), r"out of range buffer 55 \(only \d buffers\). Tensor 1", setting(tensor(1), buffer=55)),
    Bad("variable with data", (27,), "variable tensor with buffer", setting(tensor(1), is_variable=True)),
    Bad("shape overflows", (28, "class 10"), r"overflowed. Tensor 0 .*\[65536, 65536", setting(tensor(0), shape=i32(*[65536] * 4))),
    Bad("negative dimension", (28,), r"Tensor 0 .* the shape \[-2\]", setting(tensor(0), shape=i32(-2))),
    Bad("100 dimensions", (28,), "Tensor 0 .* has 100 dimensions; (64|32)", setting(tensor(0), shape=i32(*[1] * 100))),
    Bad("million dimensions", (28, 60), "has 1000000 dimensions", setting(tensor(0), shape=np.full(10**6, 2**31 - 1, np.int32))),
    Bad("signature subgraph", (30, "class 17"), "Signature 'serve' refers to subgraph 9; the model has 1", signature(subgraph_index=9)),
    Bad("signature without a key", (30,), "A signature of the model has no key", signature(signature_key=None)),
    Bad("scales and zero points", (31,), "1 zero_point values and 3 scale values.* Tensor 0", quantized([1, 1, 1], [0])),
    Bad("quantized dimension", (31,), r"range \[0, 1\). Was 7. Tensor 0", quantized([1, 1], [0, 0], 7)),
    Bad("number of scales", (31,), "per-axis quantization, but got 3. Tensor 0", quantized([1, 1, 1], [0, 0, 0])),
    Bad("blockwise scales", (31,), "Tensor 0 .*scales in tensor 99; the subgraph has 3", blockwise(scales=99)),
    Bad("blockwise zero points", (31,), "Tensor 0 .*zero points in tensor -5", blockwise(zero_points=-5)),
    Bad("blockwise size", (31,), "Tensor 0 .*blocks of 0 values", blockwise(block_size=0)),
    Bad("blockwise scales are no constant", (31,), "scales in tensor 0, which is no constant", blockwise(scales=0)),
    Bad("scale NaN", (32,), "Tensor 0 .*scale of nan", quantized([float("nan")], [0])),
    Bad("scale infinite", (32,), "Tensor 0 .*scale of inf", quantized([float("inf")], [0])),
    Bad("scale negative", (32,), "Tensor 0 .*scale of -1", quantized([-1], [0])),
    Bad("zero point 1000", (32,), "Tensor 0 .*zero point 1000, outside -128 to 127, .*INT8", quantized([1], [1000])),
    Bad("zero point of 64 bits", (32,), "Tensor 0 .*zero point 4611686018427387904", quantized([1], [2**62])),
    Bad(
        "segments too large", (33, "class 12"), r"Tensor 0 .*segments of level 1 must run upwards from 0 to its 3 indices; .*99999999",
        sparse(lambda s: setattr(s.dim_metadata[1].array_segments, "values", np.array([0, 200, 3], np.uint8)) or
               setattr(s.dim_metadata[1], "array_segments", tables.Int32Vector(values=i32(0, 99999999, 3)))),
    ),
    Bad("no segments", (33, "class 12"), "level 1 has 0 segment bounds; its 2 parents take 3",
        sparse(lambda s: setattr(s.dim_metadata[1], "array_segments", None))),
    Bad("traversal order", (33,), r"traversal order \[0, 0\] is not a permutation", sparse(lambda s: setattr(s, "traversal_order", i32(0, 0)))),
    Bad("no traversal order", (33,), r"traversal order \[\] is not", sparse(lambda s: setattr(s, "traversal_order", None))),
    Bad("sparse index", (33,), r"level 1 has the index \[7\], outside its dimension of 3",
        sparse(lambda s: setattr(s.dim_metadata[1].array_indices, "values", np.array([1, 7, 2], np.uint8)))),
    Bad("dense size", (33,), "dense level 0 has size 1000000000", sparse(lambda s: setattr(s.dim_metadata[0], "dense_size", 10**9))),
    Bad("block map", (33,), "block map|permutation", sparse(lambda s: setattr(s, "block_map", i32(5)))),
    Bad("dimension missing", (33,), "metadata of 1 dimensions; 2 are", sparse(lambda s: s.dim_metadata.pop())),
    Bad("too few stored values", (33,), "names 4 values of FLOAT32, its buffer has 12 bytes",
        sparse(lambda s: setattr(s, "dim_metadata", [
            tables.DimensionMetadata(dense_size=2),
            tables.DimensionMetadata(format=1, array_segments=tables.Int32Vector(values=i32(0, 2, 4)),
                                     array_indices=tables.Int32Vector(values=i32(0, 1, 0, 1)))]))),
    Bad("strings: count", (34,), "invalid num of string set: 2000000, in a buffer of 16", strings([2000000, 0, 0, 0])),
    Bad("strings: negative count", (34,), "invalid num of string set: -1", strings([-1, 0, 0, 0])),
    Bad("strings: first offset", (34,), "String Tensor 0 .*first one must begin at 16", strings([2, 12, 16, 16])),
    Bad("strings: falling offsets", (34,), "number 1 ends before it begins", strings([2, 16, 40, 16, 0])),
    Bad("strings: beyond the buffer", (34,), "the last one ends at 9999", strings([2, 16, 16, 9999])),
    Bad("WHILE of itself", (51, "class 7"), "circle: subgraph 0 'm' -> subgraph 0 'm'", calling(calls_while(0, 0, "m"))),
    Bad("WHILE of nothing", (51,), "Node 0 of subgraph 0 'm': there is no subgraph 50 to call as cond", calling(calls_while(50, 51, "m"))),
    Bad("IF of itself", (51, "class 7"), "circle: subgraph 0 'm' -> subgraph 0 'm'", calling(calls_if(0, 1, "m"), BODY)),
    Bad("CALL_ONCE of nothing", (51,), "there is no subgraph -3 to call as init", calling(calls_once(-3, "m"))),
    Bad(
        "mutual recursion", (51, "class 7"), "circle: subgraph 1 'a' -> subgraph 2 'b' -> subgraph 1 'a'",
        calling(calls_while(3, 1, "m"), calls_while(3, 2, "a"), calls_while(3, 1, "b"), BODY),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", noted(CASES, HERE), ids=lambda case: case.name)
def test_a_broken_rule_is_refused_while_loading(case: Bad) -> None:
    data = case.make()
    refusal(lambda: Interpreter(model_content=data), case.words)


def test_what_the_tests_break_works_as_it_is() -> None:
    for data in (base(), strings([2, 16, 18, 19, 0x636261])(), sparse(lambda s: None)(), quantized([1], [0])):
        Interpreter(model_content=data if isinstance(data, bytes) else data())
