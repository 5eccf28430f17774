"""A tensor that a node writes has the node's value, whatever bytes the file has for it, in all states and beside all delegates.

onnx2tf writes such files (ScatterElements); LiteRT runs them. Where a kernel of its own works the value out while preparing, as those of SHAPE
and of CONCATENATION of constants do, its three ways agree with one another and with the same model without the bytes. Elsewhere it writes
into the model's own bytes, and the process ends where these are a mapped file: the truth is then its answer to the model without the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, Model, ModelBuilder, load_delegate
from oplet.errors import ModelError
from oplet.schema.options import (
    AddOptions,
    ConcatenationOptions,
    FullyConnectedOptions,
    IfOptions,
    ReshapeOptions,
    ShapeOptions,
    WhileOptions,
)
from oplet_testing import invoke
from oplet_tools.describing.inspect import inspect_model
from oplet_tools.rewriting.rewrite import rewrite

F32, I32 = np.float32, np.int32


class Case:
    """A model whose tensor `written` has bytes, or its twin in which it has none."""

    def __init__(self, with_bytes: bool) -> None:
        self.builder = ModelBuilder()
        self.graph = self.builder.add_subgraph()
        self._with_bytes = with_bytes

    def written(self, type: Any, shape: list[int], graph: Any = None) -> int:
        data = np.full(shape, 77).astype(type) if self._with_bytes else None
        return int((graph or self.graph).add_tensor("written", type, shape, data=data))

    def fed(self, type: Any = F32, shape: Any = (3,), graph: Any = None, name: str = "x") -> int:
        return int((graph or self.graph).add_tensor(name, type, list(shape)))

    def fixed(self, values: Any, type: Any = F32) -> int:
        return int(self.graph.add_tensor("fixed", type, np.shape(values), data=np.array(values, type)))

    def done(self, inputs: Any, outputs: Any) -> bytes:
        self.graph.set_inputs(*inputs)
        self.graph.set_outputs(*outputs)
        return bytes(self.builder.to_bytes())


def _inner(case: Case) -> bytes:
    x, c, y = case.fed(), case.written(F32, [3]), case.fed(name="y")
    case.graph.add_operator("ABS", [x], [c])
    case.graph.add_operator("NEG", [c], [y])
    return case.done([x], [y])


def _an_output(case: Case) -> bytes:
    x, c, y = case.fed(), case.written(F32, [3]), case.fed(name="y")
    case.graph.add_operator("ABS", [x], [c])
    case.graph.add_operator("NEG", [c], [y])
    return case.done([x], [c, y])


def _weights(case: Case) -> bytes:
    w, given, x, y = case.written(F32, [4, 3]), case.fed(shape=(4, 3)), case.fixed([[1, 2, 3]]), case.fed(shape=(1, 4), name="y")
    case.graph.add_operator("ABS", [given], [w])
    case.graph.add_operator("FULLY_CONNECTED", [x, w, None], [y], FullyConnectedOptions())
    return case.done([given], [y])


def _half_constant_concatenation(case: Case) -> bytes:
    x, c, y = case.fed(shape=(2,)), case.written(F32, [3]), case.fed(name="y")
    case.graph.add_operator("CONCATENATION", [case.fixed([7]), x], [c], ConcatenationOptions())
    case.graph.add_operator("NEG", [c], [y])
    return case.done([x], [y])


def _folded(case: Case) -> bytes:
    x, c, y = case.fed(), case.written(F32, [3]), case.fed(name="y")
    case.graph.add_operator("NEG", [case.fixed([1, -2, 3])], [c])
    case.graph.add_operator("ADD", [c, x], [y], AddOptions())
    return case.done([x], [y])


def _target_of_a_reshape(case: Case) -> bytes:
    x, s, y = case.fed(), case.written(I32, [2]), case.fed(shape=(3, 1), name="y")
    case.graph.add_operator("NEG", [case.fixed([-3, -1], I32)], [s])
    case.graph.add_operator("RESHAPE", [x, s], [y], ReshapeOptions())
    return case.done([x], [y])


def _branches(case: Case) -> bytes:
    take, x, y = case.fed(np.bool_, ()), case.fed(), case.fed(name="y")
    for op in ("ABS", "EXP"):
        body = case.builder.add_subgraph(op)
        given, made = case.fed(graph=body), case.written(F32, [3], body)
        body.add_operator(op, [given], [made])
        body.set_inputs(given)
        body.set_outputs(made)
    case.graph.add_operator("IF", [take, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    return case.done([take, x], [y])


def _loop(case: Case) -> bytes:
    x, y = case.fed(shape=()), case.fed(shape=(), name="y")
    condition, body = case.builder.add_subgraph("condition"), case.builder.add_subgraph("body")
    for graph, op, type in ((condition, "LESS", np.bool_), (body, "ADD", F32)):
        given, made = case.fed(shape=(), graph=graph), case.written(type, [], graph)
        other = graph.add_tensor("other", F32, [], data=F32(5 if op == "LESS" else 2))
        graph.add_operator(op, [given, other], [made], None if op == "LESS" else AddOptions())
        graph.set_inputs(given)
        graph.set_outputs(made)
    case.graph.add_operator("WHILE", [x], [y], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    return case.done([x], [y])


def _shape(case: Case) -> bytes:
    x, s, y = case.fed(), case.written(I32, [1]), case.fed(I32, (1,), name="y")
    case.graph.add_operator("SHAPE", [x], [s], ShapeOptions(out_type=2))
    case.graph.add_operator("NEG", [s], [y])
    return case.done([x], [y])


def _constant_concatenation(case: Case) -> bytes:
    x, c, y = case.fed(), case.written(F32, [3]), case.fed(name="y")
    case.graph.add_operator("CONCATENATION", [case.fixed([7]), case.fixed([8, 9])], [c], ConcatenationOptions())
    case.graph.add_operator("ADD", [c, x], [y], AddOptions())
    return case.done([x], [y])


WORKED_OUT_BEFORE: list[Callable[[Case], bytes]] = [_shape, _constant_concatenation]
CASES: list[Callable[[Case], bytes]] = [
    *WORKED_OUT_BEFORE,
    _inner,
    _an_output,
    _weights,
    _half_constant_concatenation,
    _folded,
    _target_of_a_reshape,
    _branches,
    _loop,
]
each_case = pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__.strip("_"))


def feeds(content: bytes, run: int) -> list[Any]:
    table = (Model.from_bytes(content).root.subgraphs or [])[0]
    made = []
    for index in table.inputs.tolist():  # type: ignore[union-attr]
        tensor = (table.tensors or [])[index]
        shape = [] if tensor.shape is None else tensor.shape.tolist()
        values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) - 1.5) * (-1) ** run * (run + 1)
        made.append(np.array(run % 2 == 0) if tensor.type.name == "BOOL" else values.astype(F32))
    return made


def answers(interpreter: Any, content: bytes) -> list[list[Any]]:
    interpreter.allocate_tensors()
    return [[np.array(each) for each in invoke(interpreter, *feeds(content, run))] for run in range(3)]


def same(found: list[list[Any]], wanted: list[list[Any]]) -> None:
    for mine, theirs in zip(found, wanted, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


@each_case
def test_the_node_s_value_counts_with_every_package(build: Callable[[Case], bytes], engine: list[str], tmp_path: Path) -> None:
    reference = pytest.importorskip("ai_edge_litert.interpreter")
    content, twin = build(Case(with_bytes=True)), build(Case(with_bytes=False))
    assert content != twin
    wanted = answers(reference.Interpreter(model_content=twin), twin)
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    same(answers(Interpreter(model_content=content, plugins=engine), content), wanted)
    same(answers(Interpreter(model_path=path, plugins=engine), content), wanted)  # a second one, as of a plan that is remembered
    same(answers(Interpreter(model_path=path, plugins=engine, experimental_preserve_all_tensors=True), content), wanted)
    assert path.read_bytes() == content


@pytest.mark.parametrize("build", WORKED_OUT_BEFORE, ids=lambda build: build.__name__.strip("_"))
@pytest.mark.parametrize("way", ["BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF"])  # XNNPACK writes into the bytes here, too
def test_litert_s_own_kernels_take_the_node_s_value(build: Callable[[Case], bytes], way: str) -> None:
    reference = pytest.importorskip("ai_edge_litert.interpreter")
    content = build(Case(with_bytes=True))
    theirs = reference.Interpreter(model_content=content, experimental_op_resolver_type=reference.OpResolverType[way])
    same(answers(Interpreter(model_content=content), content), answers(theirs, content))


@each_case
@pytest.mark.parametrize("delegate", ["litert", "openvino"])
def test_delegates_are_given_the_node_s_value(build: Callable[[Case], bytes], delegate: str) -> None:
    content = build(Case(with_bytes=True))
    try:
        applied = load_delegate(delegate)
    except ValueError as error:
        pytest.skip(str(error))
    delegated = Interpreter(model_content=content, experimental_delegates=[applied])
    same(answers(delegated, content), answers(Interpreter(model_content=content), content))


@each_case
def test_it_is_no_constant_for_tools(build: Callable[[Case], bytes]) -> None:
    content = build(Case(with_bytes=True))
    model = Model.from_bytes(content)
    tensors = [tensor for graph in inspect_model(model)["subgraphs"] for tensor in graph["tensors"]]
    assert not any(tensor["constant"] for tensor in tensors if tensor["name"] == "written")
    rewritten, _ = rewrite(model, strip_unused=True)
    kept = rewritten.to_bytes()
    same(answers(Interpreter(model_content=kept), content), answers(Interpreter(model_content=content), content))


def test_it_may_be_written_in_another_shape() -> None:
    case = Case(with_bytes=True)
    x, c, y = case.fed(shape=(2,)), case.written(F32, [3]), case.fed(shape=(2,), name="y")
    case.graph.add_operator("ABS", [x], [c])
    case.graph.add_operator("NEG", [c], [y])
    interpreter = Interpreter(model_content=case.done([x], [y]))
    assert invoke(interpreter, np.array([-1, 2], F32))[0].tolist() == [-1, -2]
    assert invoke(interpreter, np.array([-1, 2, -3, 4], F32), resize=True)[0].tolist() == [-1, -2, -3, -4]


def test_what_reads_it_before_the_node_is_refused_as_litert_s_answer_hangs_on_the_run_before() -> None:
    case = Case(with_bytes=True)
    x, c, y = case.fed(), case.written(F32, [3]), case.fed(name="y")
    case.graph.add_operator("NEG", [c], [y])
    case.graph.add_operator("ABS", [x], [c])
    with pytest.raises(ModelError, match=r"Node 0 \(NEG\) .*reads tensor 1 \('written'\), which has bytes .* node 1 only later"):
        Interpreter(model_content=case.done([x], [c, y]))


def test_a_target_shape_with_bytes_that_a_node_writes_is_not_rewritten_for_another_batch() -> None:
    case = Case(with_bytes=False)
    x, y = case.fed(shape=(1, 4)), case.fed(shape=(1, 2, 2), name="y")
    target = case.graph.add_tensor("target", I32, [3], data=[1, 2, 2])
    case.graph.add_operator("NEG", [case.fixed([-1, -2, -2], I32)], [target])
    case.graph.add_operator("RESHAPE", [x, target], [y], ReshapeOptions())
    with pytest.raises(ModelError):
        rewrite(Model.from_bytes(case.done([x], [y])), batch=2)
