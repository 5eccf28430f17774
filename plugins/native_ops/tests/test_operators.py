"""What an operator of a library may ask for it gets: options, scratch, state, shapes that follow from data, strings, types."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from oplet import BuiltinOperator, Interpreter, ModelBuilder, MutableOpResolver, TensorType
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import AddOptions, LeakyReluOptions, Pool2DOptions
from oplet_native_ops import load_ops, register_library
from oplet_testing import Spec, one_op_model, run_op


@pytest.fixture(scope="module")
def ops(build_once: Any) -> MutableOpResolver:
    return load_ops(
        build_once("operators.cc"),
        {
            "Above": "Register_ABOVE",
            "Total": "TotalOperator",
            "Capitals": "CapitalsOperator",
            "Told": "Register_TOLD",
            "Whole": "Register_WHOLE",
            "Unknown": "Register_UNKNOWN",
            BuiltinOperator.AVERAGE_POOL_2D: "Register_POOL",
        },
    )


FLOATS = Spec("float32", [6])


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def above_then_negative() -> bytes:
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    x, y, z = (graph.add_tensor(name, "float32", [6]) for name in "xyz")
    graph.set_inputs(x)
    graph.set_outputs(z)
    graph.add_operator("Above", [x], [y], custom_options=struct.pack("<f", 1.5))
    graph.add_operator("NEG", [y], [z])
    return builder.to_bytes()


def test_a_dynamic_output_has_in_each_run_the_shape_that_the_library_gives_it(ops: MutableOpResolver) -> None:
    interpreter = Interpreter(model_content=above_then_negative(), op_resolver=ops)
    interpreter.allocate_tensors()
    for values in ([1, 2, 3, -1, 5, 0], [9] * 6, [0] * 6, [1, 2, 3, -1, 5, 0]):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], floats(*values))
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        assert found.tolist() == [-value for value in values if value > 1.5]
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [2000])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.arange(2000, dtype=np.float32))
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape == (1998,)


def test_a_persistent_tensor_of_the_librarys_keeps_its_values(ops: MutableOpResolver) -> None:
    model = one_op_model("Total", [Spec("float32", [3])], [Spec("float32", [3])])
    first, other = (Interpreter(model_content=model, op_resolver=ops) for _ in range(2))
    for interpreter in (first, other):
        interpreter.allocate_tensors()
    for count in range(1, 4):
        first.set_tensor(0, floats(1, 2, 3))
        first.invoke()
        assert first.get_tensor(1).tolist() == [count, 2 * count, 3 * count]
    other.set_tensor(0, floats(5, 5, 5))
    other.invoke()
    assert other.get_tensor(1).tolist() == [5, 5, 5]
    first.allocate_tensors()
    first.set_tensor(0, floats(1, 1, 1))
    first.invoke()
    assert first.get_tensor(1).tolist() == [4, 7, 10]


def test_strings_go_in_and_come_out(ops: MutableOpResolver) -> None:
    model = one_op_model("Capitals", [Spec(TensorType.STRING, [4])], [Spec(TensorType.STRING, [4])])
    interpreter = Interpreter(model_content=model, op_resolver=ops)
    interpreter.allocate_tensors()
    for texts in ([b"abc", b"", "\N{SNOWMAN}x".encode(), b"a\0b"], [b"", b"", b"", b""], [b"x" * 5000, b"y", b"", b"z"]):
        interpreter.set_tensor(0, np.array(texts, object))
        interpreter.invoke()
        assert interpreter.get_tensor(1).tolist() == [text.upper() for text in texts if text]


def test_constant_strings_are_there_before_the_first_run(ops: MutableOpResolver) -> None:
    [found] = run_op(
        one_op_model(
            "Capitals", [Spec(TensorType.STRING, [2], data=np.array([b"a", b"bc"], object))], [Spec(TensorType.STRING, [2])]
        ),
        op_resolver=ops,
    )
    assert found.tolist() == [b"A", b"BC"]


def test_a_node_is_told_what_the_model_says_of_it(ops: MutableOpResolver) -> None:
    x = Spec("int8", [4], scale=0.25, zero_point=-3, signature=[-1])
    model = one_op_model("Told", [x, floats(4, 5), None], [Spec("float32", [1])], custom_options=b"\1\2\3")
    interpreter = Interpreter(model_content=model, op_resolver=ops, num_threads=3)
    interpreter.allocate_tensors()
    interpreter.invoke()
    name = interpreter.get_input_details()[0]["name"]
    told = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert told.tolist() == [5, 0.25, -3, len(name), -1, 3, -1, 3, 3, 1]


def test_options_that_the_model_leaves_out_are_a_null_pointer(ops: MutableOpResolver) -> None:
    [told] = run_op(
        one_op_model("Told", [Spec("float32", [4]), floats(4, 5), None], [Spec("float32", [1])]),
        floats(0, 0, 0, 0),
        op_resolver=ops,
    )
    assert told[[1, 4, 7, 8]].tolist() == [-1, 7, 0, 0]


def test_the_library_may_correct_the_type_of_an_output(ops: MutableOpResolver) -> None:
    [found] = run_op(one_op_model("Whole", [FLOATS], [FLOATS]), floats(1.5, 2.5, -1.5, 0, 7, 9.9), op_resolver=ops)
    assert (found.dtype, found.tolist()) == (np.int32, [1, 2, -1, 0, 7, 9])


def test_a_shape_that_prepare_does_not_know_is_found_while_running(ops: MutableOpResolver) -> None:
    model = one_op_model("Unknown", [Spec("float32", [1])], [Spec("float32", [1])])
    interpreter = Interpreter(model_content=model, op_resolver=ops)
    interpreter.allocate_tensors()
    for count in (3, 0, 5):
        interpreter.set_tensor(0, floats(count))
        interpreter.invoke()
        assert interpreter.get_tensor(1).tolist() == list(range(count))


def test_a_builtin_operator_is_replaced_and_gets_its_options_as_a_struct(build_once: Any, ops: MutableOpResolver) -> None:
    model = one_op_model("LEAKY_RELU", [FLOATS], [FLOATS], LeakyReluOptions(alpha=0.5))
    x = floats(1, -1, 2, 0, 3, -7)
    [found] = run_op(model, x, op_resolver=load_ops(build_once("operators.cc"), "LeakyOperator"))
    assert found.tolist() == [1, 500, 2, 500, 3, 500]
    options = Pool2DOptions(
        padding=Padding.VALID,
        stride_w=2,
        stride_h=3,
        filter_width=4,
        filter_height=5,
        fused_activation_function=ActivationFunctionType.RELU6,
    )
    model = one_op_model("AVERAGE_POOL_2D", [Spec("float32", [1, 5, 5, 1])], [FLOATS], options)
    [found] = run_op(model, np.zeros((1, 5, 5, 1), np.float32), op_resolver=ops)
    assert found.tolist() == [2, 2, 3, 4, 5, 3]


def test_add_whose_number_is_zero_is_replaced_as_others_are(build_once: Any) -> None:
    resolver = load_ops(build_once("add_operator.cc"), "SumOperator")
    assert resolver.versions(BuiltinOperator.ADD) == [1]
    model = one_op_model("ADD", [FLOATS, FLOATS], [FLOATS], AddOptions())
    [found] = run_op(model, floats(1, 2, 3, 4, 5, 6), floats(1, 1, 1, 1, 1, 1), op_resolver=resolver)
    assert found.tolist() == [1001, 1002, 1003, 1004, 1005, 1006]


def test_types_that_libraries_cannot_be_given_go_to_the_next_provider_or_are_refused(ops: MutableOpResolver) -> None:
    model = one_op_model("Total", [Spec(TensorType.INT4, [4])], [Spec(TensorType.INT4, [4])])
    with pytest.raises(
        RuntimeError, match=r"operators\.so declines it: .*INT4 \[4\]\) is of a type that compiled operators cannot be given"
    ):
        run_op(model, np.zeros(4, np.int8), op_resolver=ops)


def test_a_package_registers_its_library_and_it_is_opened_when_a_model_needs_it(build_once: Any, tmp_path: Any) -> None:
    resolver = MutableOpResolver()
    register_library(resolver, tmp_path / "libnone.so", {"Total": "TotalOperator", BuiltinOperator.NEG: "Negative"})
    assert resolver.versions("Total") == [1]
    model = one_op_model("Total", [FLOATS], [FLOATS])
    with pytest.raises(RuntimeError, match=r"There is no library .*libnone\.so; give the path"):
        run_op(model, floats(0, 0, 0, 0, 0, 0), op_resolver=resolver)
    resolver = MutableOpResolver()
    register_library(resolver, build_once("operators.cc"), {"Total": "TotalOperator"})
    [found] = run_op(model, floats(1, 2, 3, 4, 5, 6), op_resolver=resolver)
    assert found.tolist() == [1, 2, 3, 4, 5, 6]
    resolver = MutableOpResolver()
    register_library(resolver, build_once("operators.cc"), "TotalOperator")
    [found] = run_op(model, floats(1, 2, 3, 4, 5, 6), op_resolver=resolver)
    assert found.tolist() == [1, 2, 3, 4, 5, 6]


def test_a_version_that_the_library_does_not_serve_is_refused(build_once: Any) -> None:
    resolver = MutableOpResolver()
    register_library(resolver, build_once("operators.cc"), {"Total": "TotalOperator"}, version=2)
    with pytest.raises(RuntimeError, match=r"TotalOperator of .* returns an operator of version 1, which is registered as 2"):
        run_op(one_op_model("Total", [FLOATS], [FLOATS], version=2), floats(0, 0, 0, 0, 0, 0), op_resolver=resolver)
