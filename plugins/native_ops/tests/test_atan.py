"""The guide's Atan, in each of the forms that libraries have had, runs as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, MutableOpResolver
from oplet_native_ops import load_ops
from oplet_native_ops.shim.opening import open_library

MODEL = Path(__file__).parents[3] / "examples" / "atan" / "atan.tflite"
#: The five values of the guide, and what the model gives for them: atan(x + 1).
X = np.array([-8, 0.5, 2, 2.2, 201], np.float32)
Y = [-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458]
STRUCT = "tflite::ops::custom::Register_ATAN"
FORMS: dict[str, Any] = {
    "atan_operator.cc": None,
    "atan_with_data.cc": None,
    "atan_external.c": None,
    "atan_struct.cc": {"Atan": STRUCT},
}


def run(interpreter: Interpreter, x: Any) -> Any:
    [inward], [outward] = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(inward["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(outward["index"])


#: The first time that ziglang compiles C++ it makes a C++ library, which takes minutes.
WAYS = [
    pytest.param(compiler, source, marks=[pytest.mark.environment] if compiler == "ziglang" and source.endswith(".cc") else [])
    for compiler in ("gcc", "ziglang")
    for source in FORMS
]


@pytest.mark.parametrize(("compiler", "source"), WAYS)
def test_the_guides_operator_gives_the_guides_values(build_with: Any, compiler: str, source: str) -> None:
    build = build_with(compiler)
    resolver = load_ops(build(source), FORMS[source])
    interpreter = Interpreter(str(MODEL), op_resolver=resolver)
    interpreter.allocate_tensors()
    np.testing.assert_allclose(run(interpreter, X), Y, rtol=0, atol=1e-6)
    shape = [2, 7]
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
    interpreter.allocate_tensors()
    other = np.linspace(-3, 3, 14, dtype=np.float32).reshape(shape)
    np.testing.assert_allclose(run(interpreter, other), np.arctan(other + 1), rtol=0, atol=1e-6)
    assert [report.plugin for report in interpreter.explain() if report.op == "Atan"] == [Path(build(source)).name]


def test_the_library_reads_and_writes_the_tensors_own_memory(build_once: Any) -> None:
    interpreter = Interpreter(str(MODEL), op_resolver=load_ops(build_once("atan_operator.cc")))
    interpreter.allocate_tensors()
    interpreter.tensor(interpreter.get_input_details()[0]["index"])()[:] = X
    view = interpreter.tensor(interpreter.get_output_details()[0]["index"])
    interpreter.invoke()
    first = view().__array_interface__["data"][0]
    np.testing.assert_allclose(view(), Y, rtol=0, atol=1e-6)
    interpreter.invoke()
    assert view().__array_interface__["data"][0] == first


def test_several_libraries_go_together(build_once: Any) -> None:
    resolver = MutableOpResolver()
    resolver.add_all(load_ops(build_once("atan_operator.cc")))
    resolver.add_all(load_ops(build_once("atan_struct.cc"), {"Other": STRUCT}))
    assert sorted(str(claim.op) for claim in resolver.entries()) == ["Atan", "Other"]
    assert len({claim.provenance.plugin for claim in resolver.entries()}) == 2


def test_init_and_free_balance_and_prepare_runs_for_each_shape(build_once: Any) -> None:
    path = build_once("atan_with_data.cc")
    resolver = load_ops(path)
    count = open_library(path).functions.AtanCount
    before = [count(i) for i in range(4)]
    interpreter = Interpreter(str(MODEL), op_resolver=resolver)
    interpreter.allocate_tensors()
    run(interpreter, X)
    run(interpreter, X)
    assert [count(i) - n for i, n in enumerate(before)] == [1, 0, 1, 2]
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [3])
    interpreter.allocate_tensors()
    run(interpreter, X[:3])
    assert [count(i) - n for i, n in enumerate(before)] == [1, 0, 2, 3]
    interpreter.close()
    assert [count(i) - n for i, n in enumerate(before)] == [1, 1, 2, 3]
