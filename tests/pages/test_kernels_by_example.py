"""docs/kernels-by-example.md, run as it is written: its kernels keep the contract, its tests pass, its last kernel falls back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.pages.python_blocks import run_blocks
from tests.places import ROOT

from oplet import Interpreter, MutableOpResolver
from oplet.schema.options import SoftmaxOptions
from oplet_testing import Spec, one_op_model, run_op

NAMES = run_blocks(ROOT / "docs" / "kernels-by-example.md")
RESOLVER = NAMES["OPS"]
#: The page's own tests and contracts, which pytest finds here.
globals().update({name: found for name, found in NAMES.items() if name.lower().startswith("test")})


def test_the_page_has_a_contract_and_tests_of_its_own_for_each_op() -> None:
    assert {"TestFloats", "TestInt8", "TestRunningSum", "TestAbove"} < globals().keys()
    assert sum(name.startswith("test_") for name in NAMES) == 3


def test_the_page_s_override_serves_floats_and_leaves_the_rest_as_it_was() -> None:
    pytest.importorskip("oplet_builtin_ops")
    x = np.array([[1, 2, 3, 4]], np.float32)
    model = one_op_model("SOFTMAX", [Spec("float32", [1, 4])], [Spec("float32", [1, 4])], SoftmaxOptions(beta=1.0))
    np.testing.assert_allclose(run_op(model, x, op_resolver=RESOLVER), run_op(model, x), rtol=1e-6)
    given, made = Spec("int8", [1, 4], scale=0.1, zero_point=0), Spec("int8", [1, 4], scale=1 / 256, zero_point=-128)
    model = one_op_model("SOFTMAX", [given], [made], SoftmaxOptions(beta=1.0), version=2)
    values = np.array([[10, 20, 30, 40]], np.int8)
    np.testing.assert_array_equal(run_op(model, values, op_resolver=RESOLVER), run_op(model, values))
    interpreter = Interpreter(model_content=model, op_resolver=RESOLVER)
    interpreter.allocate_tensors()
    assert "declined it: it takes FLOAT32, not INT8" in interpreter.explain()[0].why


def test_the_table_of_quantization_says_what_tensors_have() -> None:
    seen: dict[str, Any] = {}

    def prepare(context: Any, node: Any) -> None:
        for name, tensor in zip(("float", "one", "many"), node.inputs):
            found = tensor.quantization
            seen[name] = (tensor.scale, tensor.zero_point, tensor.per_channel, found is None)
            if found is not None:
                scales, zero_points = found.broadcast(tensor.ndim)
                seen[f"{name}, broadcast"] = (scales.shape, zero_points.shape, scales.dtype.name, zero_points.dtype.name)
                seen[f"{name}, axis"] = found.quantized_dimension

    from oplet import Registration

    resolver = MutableOpResolver()
    resolver.add_custom("Look", Registration(prepare=prepare, invoke=lambda context, node: None))
    many = Spec("int8", [4, 3, 2], scale=[1, 2, 3], zero_point=[0, 0, 0], axis=1, data=np.zeros((4, 3, 2)))
    one = Spec("int8", [2], scale=0.5, zero_point=7, data=[0, 0])
    model = one_op_model("Look", [Spec("float32", [1]), one, many], [Spec("float32", [1])])
    Interpreter(model_content=model, op_resolver=resolver).allocate_tensors()
    assert seen == {
        "float": (0.0, 0, False, True),
        "one": (0.5, 7, False, False),
        "one, broadcast": ((), (), "float32", "int64"),
        "one, axis": 0,
        "many": (1.0, 0, True, False),
        "many, broadcast": ((1, 3, 1), (1, 3, 1), "float32", "int64"),
        "many, axis": 1,
    }
