"""Control flow: subgraphs become part of the function, and a loop is one loop on the device."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
import pytest
from tests.places import CONFORMANCE

from oplet import Interpreter, Limits, ModelBuilder, load_delegate
from oplet.errors import LimitError
from oplet.schema.options import AddOptions, IfOptions, MulOptions, WhileOptions
from oplet_xla_delegate import kernel


def loop_model(step: int = 1) -> bytes:
    """x doubled while a counter is below a number: both are inputs."""
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    names = [("i", "int32", []), ("n", "int32", []), ("x", "float32", [3])]
    given = [main.add_tensor(name, type, shape) for name, type, shape in names]
    made = [main.add_tensor(f"{name}_", type, shape) for name, type, shape in names]
    condition, body = builder.add_subgraph("condition"), builder.add_subgraph("body")
    main.add_operator("WHILE", given, made, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    main.set_inputs(*given)
    main.set_outputs(*made)
    tested = [condition.add_tensor(name, type, shape) for name, type, shape in names]
    flag = condition.add_tensor("flag", "bool", [])
    condition.add_operator("LESS", tested[:2], [flag])
    condition.set_inputs(*tested)
    condition.set_outputs(flag)
    before = [body.add_tensor(name, type, shape) for name, type, shape in names]
    one = body.add_tensor("step", "int32", [], data=np.array(step, np.int32))
    two = body.add_tensor("two", "float32", [], data=np.array(2, np.float32))
    after, doubled = body.add_tensor("next", "int32", []), body.add_tensor("doubled", "float32", [3])
    body.add_operator("ADD", [before[0], one], [after], AddOptions())
    body.add_operator("MUL", [before[2], two], [doubled], MulOptions())
    body.set_inputs(*before)
    body.set_outputs(after, before[1], doubled)
    return builder.to_bytes()


def run(interpreter: Interpreter, *values: Any) -> list[Any]:
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def delegated(content: bytes, **arguments: Any) -> Interpreter:
    return Interpreter(model_content=content, experimental_delegates=[load_delegate("xla", {"device": "cpu"})], **arguments)


def test_a_loop_is_one_function_whose_rounds_are_counted_by_its_inputs() -> None:
    interpreter = delegated(loop_model())
    assert [report.partitions for report in interpreter.delegation_reports()] == [[[0]]]  # the bodies are not asked for
    x = np.array([1, -2, 3], np.float32)
    for rounds in (5, 0, 3):
        answers = run(interpreter, np.int32(0), np.int32(rounds), x)
        assert [answer.tolist() for answer in answers] == [rounds, rounds, (x * 2**rounds).tolist()]


def test_a_loop_that_does_not_end_is_refused_and_the_next_run_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MOST_ITERATIONS", 50)
    interpreter = delegated(loop_model(step=0))
    assert interpreter.delegation_reports()[0].partitions == [[0]]
    x = np.ones(3, np.float32)
    with pytest.raises(LimitError, match="did not end after 50 iterations"):
        run(interpreter, np.int32(0), np.int32(1), x)
    assert run(interpreter, np.int32(2), np.int32(1), x)[2].tolist() == x.tolist()


def test_where_time_is_limited_loops_stay_with_the_runtime_that_can_stop_them() -> None:
    interpreter = delegated(loop_model(), limits=Limits(max_seconds=5.0))
    report = interpreter.delegation_reports()[0]
    assert not report.partitions
    assert "nobody can stop it" in report.unsupported[0]


def test_a_choice_is_one_function() -> None:
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    flag, x, y = main.add_tensor("c", "bool", []), main.add_tensor("x", "float32", [3]), main.add_tensor("y", "float32", [3])
    main.add_operator("IF", [flag, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    main.set_inputs(flag, x)
    main.set_outputs(y)
    for name, op in (("then", "ABS"), ("else", "NEG")):
        branch = builder.add_subgraph(name)
        a, b = branch.add_tensor("a", "float32", [3]), branch.add_tensor("b", "float32", [3])
        branch.add_operator(op, [a], [b])
        branch.set_inputs(a)
        branch.set_outputs(b)
    interpreter = delegated(builder.to_bytes())
    assert [report.partitions for report in interpreter.delegation_reports()] == [[[0]]]
    value = np.array([1, -2, 3], np.float32)
    assert run(interpreter, np.bool_(True), value)[0].tolist() == [1, 2, 3]
    assert run(interpreter, np.bool_(False), value)[0].tolist() == [-1, 2, -3]


@pytest.mark.parametrize("name", ["lstm_f32", "gru_f32", "lstm_seq_fp16"])
def test_a_keras_layer_s_loop_is_one_loop(name: str) -> None:
    path = CONFORMANCE / "ops" / "keras_rnn.zip"
    if not path.exists():
        pytest.skip("there are no recorded cases")
    with zipfile.ZipFile(path) as file:
        content = file.read(f"{name}/model.tflite")
    interpreter, plain = delegated(content), Interpreter(model_content=content)
    report = interpreter.delegation_reports()[0]
    assert len(report.partitions) == 1
    assert set(report.unsupported.values()) <= {"its result is constant, nothing needs to run"}
    x = np.random.default_rng(0).standard_normal(interpreter.get_input_details()[0]["shape"]).astype(np.float32)
    np.testing.assert_allclose(run(interpreter, x)[0], run(plain, x)[0], rtol=1e-4, atol=1e-5)
