"""Registrations and resolvers that serve only some types of tensors."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import BuiltinOperator, Interpreter, MutableOpResolver, Registration, TensorType, TypeLimit, ensure
from oplet.errors import PrepareError
from oplet_testing import Spec, one_op_model


def twice(calls: list[str]) -> Registration:
    """An op that doubles, and notes the calls of its methods."""

    def prepare(context, node):
        calls.append("prepare")
        ensure(len(node.inputs) >= 1, "Twice takes an input.")
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    return Registration(
        init=lambda context, buffer: calls.append("init") or "state",
        free=lambda context, user_data: calls.append(f"free {user_data}"),
        prepare=prepare,
        bind=lambda context, node: lambda: np.multiply(node.inputs[0].data, 2, out=node.outputs[0].data),
        profiling_string=lambda context, node: "label",
        pure=True,
        user_data="shared",
        types=(TensorType.FLOAT32, TensorType.INT8, TensorType.INT32),
    )


TWICE = twice([])
ONLY_FLOAT = TypeLimit((TensorType.FLOAT32,), "my_app_ops 1.0")


def model(type: str, omitted: bool = False) -> bytes:
    x = Spec(type, [2])
    return one_op_model("Twice", [x, None] if omitted else [x], [x])


def resolver(registration, **arguments):
    made = MutableOpResolver()
    made.add_custom("Twice", registration, **arguments)
    return made


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("omitted", [False, True])
def test_a_limited_registration_runs_the_types_that_it_has_with_all_its_methods(lazily, omitted):
    calls: list[str] = []  # interpreters of other tests may be freed at any time
    ops = resolver(twice(calls), limit=ONLY_FLOAT) if lazily else resolver(ONLY_FLOAT.applied_to(twice(calls)))
    interpreter = Interpreter(model_content=model("float32", omitted), op_resolver=ops, plugins=[])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([1, 2], np.float32))
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == [2, 4]
    interpreter.close()
    assert calls == ["init", "prepare", "free state"]


@pytest.mark.parametrize("lazily", [False, True])
def test_another_type_is_refused_and_the_message_says_what_to_do(lazily):
    ops = resolver(TWICE, limit=ONLY_FLOAT) if lazily else resolver(ONLY_FLOAT.applied_to(TWICE))
    interpreter = Interpreter(model_content=model("int8"), op_resolver=ops, plugins=[])
    with pytest.raises(PrepareError) as error:
        interpreter.allocate_tensors()
    for words in (
        "Twice of my_app_ops 1.0 was built for FLOAT32 only",
        "'input_0' (INT8",
        "oplet build",
        "oplet-builtin-ops",
        "Node number 0 (Twice)",
    ):
        assert words in str(error.value)


def test_the_other_fields_stay_what_they_are():
    made = TypeLimit((TensorType.INT8, TensorType.BOOL)).applied_to(TWICE)
    assert made.types == (TensorType.INT8,)
    for name in ("init", "free", "bind", "invoke", "async_kernel", "profiling_string", "pure", "user_data"):
        assert getattr(made, name) == getattr(TWICE, name)
    assert TypeLimit((TensorType.BOOL,)).applied_to(Registration(bind=TWICE.bind)).types == (TensorType.BOOL,)


def test_no_types_are_no_limit():
    assert TypeLimit(()).applied_to(TWICE) is TWICE


def test_a_limit_of_a_resolver_goes_along_to_others():
    other = MutableOpResolver()
    other.add_all(resolver(TWICE, limit=ONLY_FLOAT))
    assert other.find_op("Twice", 1).types == (TensorType.FLOAT32,)
    made = MutableOpResolver()
    made.add_builtin("ADD", TWICE, 1, 3, limit=ONLY_FLOAT)
    assert made.find_op(BuiltinOperator.ADD, 2).types == (TensorType.FLOAT32,)
