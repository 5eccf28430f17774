"""What fails in a library is told with its function and its own words, and what is wrong and can be seen is refused."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, TensorType
from oplet.errors import InvokeError, PluginError, PrepareError
from oplet_native_ops import load_ops
from oplet_native_ops.shim.opening import open_library
from oplet_testing import Spec, one_op_model

X = Spec("float32", [4])


@pytest.fixture
def library(build_once: Any) -> str:
    path: str = build_once("failures.cc", library="libfailures.so")
    return path


def interpreter_of(library: str, function: str, output: Spec = X) -> Interpreter:
    model = one_op_model("Op", [X, np.zeros(2, np.float32)], [output])
    return Interpreter(model_content=model, op_resolver=load_ops(library, {"Op": function}))


def fails(library: str, function: str, output: Spec = X) -> BaseException:
    """The error of loading, preparing or running; whatever was initialized is freed afterwards."""
    alive = open_library(library).functions.Alive
    before = alive()
    caught: BaseException | None = None
    try:
        with contextlib.closing(interpreter_of(library, function, output)) as interpreter:
            interpreter.allocate_tensors()
            interpreter.invoke()
    except RuntimeError as error:
        caught = error
    assert caught is not None, "nothing failed"
    assert alive() == before
    return caught


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (
            "Register_INIT_FAILS",
            PrepareError,
            r"fails to initialize: no table of 3 GB\. Node number 0 \(Op\) failed to initialize",
        ),
        (
            "Register_PREPARE_FAILS",
            PrepareError,
            r"refuses it: .*failures\.cc:\d+ .*kTfLiteInt8 \(FLOAT32 != INT8\)\. Node number 0",
        ),
        ("Register_PREPARE_IS_SILENT", PrepareError, "refuses it, with kTfLiteDelegateError and without a reason"),
        ("Register_INVOKE_FAILS", InvokeError, r"fails: the first value is 0\.0, which is not above 0\. Node number 0"),
        ("Register_INVOKE_IS_SILENT", InvokeError, "fails, with kTfLiteApplicationError and without a reason"),
        ("Register_RESIZES_LATE", InvokeError, "fails: Attempting to resize a fixed-size tensor"),
        ("Register_RESIZES_A_CONSTANT", PrepareError, "refuses it: Attempting to resize a fixed-size tensor"),
        ("Register_NEGATIVE", PrepareError, "refuses it: A tensor cannot have a negative dimension"),
        ("Register_HUGE", PrepareError, "nor more bytes than can be addressed"),
        ("Register_MOVES_THE_OUTPUT", InvokeError, "puts memory of its own in the place of tensor 2"),
        ("Register_FEW_BYTES", InvokeError, r"gives tensor 2 .* the shape \[4\] and 15 bytes"),
        ("Register_NO_BYTES", InvokeError, "says that tensor 2 .* has 16 bytes, and gives none"),
        ("Register_LATE_TYPE", InvokeError, "makes tensor 2 .* a tensor of INT64 while it runs"),
        ("Register_PACKED_TYPE", PrepareError, "makes tensor 2 .* a tensor of INT4, which is refused"),
        ("Register_ODD_MEMORY", PrepareError, "gives tensor 2 .* memory of kind 7"),
        ("Register_NO_SUCH_TEMPORARY", PrepareError, "lists tensor 1048576 among its temporaries"),
        ("Register_DELEGATES", PrepareError, "GetExecutionPlan is forbidden outside of a delegate"),
    ],
)
def test_a_failure_names_the_function_the_library_and_the_reason(library: str, function: str, kind: Any, message: str) -> None:
    error = fails(library, function)
    assert type(error) is kind
    assert re.search(f"{function} of libfailures.so .*{message}", str(error)), error


def test_strings_whose_offsets_lead_nowhere_are_refused(library: str) -> None:
    error = fails(library, "Register_BAD_STRINGS", Spec(TensorType.STRING, [1]))
    assert "writes no strings into tensor 2" in str(error)


def test_a_library_that_talks_much_is_quoted_in_part(library: str) -> None:
    text = str(fails(library, "Register_TALKS"))
    assert "line 0 of many" in text
    assert len(text) < 5000


def test_after_a_failed_run_the_interpreter_goes_on(library: str) -> None:
    interpreter = interpreter_of(library, "Register_INVOKE_FAILS")
    interpreter.allocate_tensors()
    for _ in range(3):
        with pytest.raises(InvokeError, match="the first value is 0.0"):
            interpreter.invoke()
        interpreter.set_tensor(0, np.array([1, 2, 3, 4], np.float32))
        interpreter.invoke()
        assert interpreter.get_tensor(2).tolist() == [1, 2, 3, 4]
        interpreter.set_tensor(0, np.zeros(4, np.float32))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("Register_NOTHING", "returns no operator but a null pointer"),
        ("Register_NO_INVOKE", "has no invoke, so it cannot run"),
        ("NoInvokeOperator", "has no invoke, so it cannot run"),
        ("Register_BAD_VERSION", "an operator of version -3; versions are numbers from 1"),
        ("ZeroVersionOperator", "an operator of version 0"),
        ("OddCodeOperator", "the builtin code 5000, which is no operator's"),
        ("Register_TEXT", r"is no TfLiteRegistration: its init is no function"),
        ("Register_NOWHERE", "returns 0x1000, where the program has no memory"),
        ("Register_MISSING", r"exports no function Register_MISSING .*; it has .*Operator"),
    ],
)
def test_what_is_no_operator_is_refused_when_it_is_loaded(library: str, function: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        load_ops(library, {"Op": function})


def test_functions_that_are_not_named_are_all_tried_and_the_first_bad_one_is_told(library: str) -> None:
    with pytest.raises(PluginError, match=r"of libfailures\.so"):
        load_ops(library)


def test_two_functions_that_return_the_same_operator_must_be_chosen_between(build_once: Any) -> None:
    path = build_once("atan_operator.cc", "-DTWICE")
    with pytest.raises(PluginError, match=r"both return the operator Atan of version 1; name the one to use: load_ops"):
        load_ops(path)
    assert load_ops(path, "AtanOpRegistration").versions("Atan") == [1]


def test_an_operator_that_does_not_say_its_name_needs_one(build_once: Any) -> None:
    with pytest.raises(
        PluginError, match=r'does not say its name; .*load_ops\(path, \{"NameOfTheOp": "tflite::ops::custom::Register_ATAN"\}\)'
    ):
        load_ops(build_once("atan_struct.cc"))


def test_a_library_without_functions_that_look_like_it_needs_names(build_once: Any) -> None:
    with pytest.raises(PluginError, match="exports no function that is named like one that returns an operator; name it"):
        load_ops(build_once("plain.c"))
