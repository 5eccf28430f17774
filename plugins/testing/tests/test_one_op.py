"""What tests run models with."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

from oplet import Context, Interpreter, MutableOpResolver, Node, Registration
from oplet_testing import Spec, elementwise, invoke, invoke_steps, one_op, one_op_model

F32 = np.float32


@pytest.fixture
def interpreter() -> Interpreter:
    ops = MutableOpResolver()
    ops.add_custom("Double", elementwise(lambda x: x * 2))
    model = one_op_model("Double", [Spec(F32, [2])], [Spec(F32, [2])])
    return Interpreter(model_content=model, op_resolver=ops, plugins=[])


def values(*numbers: float) -> Any:
    return np.array(numbers, F32)


def test_invoke_allocates_feeds_runs_and_gives_all_outputs(interpreter: Interpreter) -> None:
    [found] = invoke(interpreter, values(1, 2))
    assert found.tolist() == [2, 4]


def test_what_invoke_gave_does_not_change_with_the_next_run(interpreter: Interpreter) -> None:
    [first] = invoke(interpreter, values(1, 2))
    invoke(interpreter, values(3, 4))
    assert first.tolist() == [2, 4]


def test_inputs_that_are_not_fed_keep_their_values(interpreter: Interpreter) -> None:
    invoke(interpreter, values(1, 2))
    [again] = invoke(interpreter)
    assert again.tolist() == [2, 4]


def test_invoke_resizes_where_it_is_asked_to(interpreter: Interpreter) -> None:
    [found] = invoke(interpreter, values(1, 2, 3), resize=True)
    assert found.tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="Dimension mismatch"):
        invoke(interpreter, values(1, 2))


def test_steps_are_invoked_one_after_the_other_and_variables_keep_their_values_between_them() -> None:
    def total(context: Context, node: Node) -> None:
        value, state = node.inputs
        context.resize_tensor(node.outputs[0], value.shape)
        state.data[...] += value.data
        node.outputs[0].data[...] = state.data

    ops = MutableOpResolver()
    # The output is dynamic: to allocate again would set the variable to zero.
    ops.add_custom("Sum", Registration(prepare=lambda context, node: context.set_dynamic(node.outputs[0]), invoke=total))
    x = Spec(F32, [2])
    model = one_op_model("Sum", [x, x._replace(variable=True)], [x])
    interpreter = Interpreter(model_content=model, op_resolver=ops, plugins=[])
    found = invoke_steps(interpreter, [[values(1, 2)], [values(3, 4)], []])
    assert [[output.tolist() for output in outputs] for outputs in found] == [[[1, 2]], [[4, 6]], [[7, 10]]]
    assert invoke_steps(interpreter, []) == []


def test_the_examples_in_the_documentation_run() -> None:
    assert doctest.testmod(one_op).failed == 0
