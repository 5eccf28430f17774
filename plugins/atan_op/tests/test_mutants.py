"""The contract of ops catches a kernel that is slightly wrong: twenty ways to spoil this one, and what finds each."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oplet_atan_op
from oplet import MutableOpResolver
from oplet_testing import OpContract, Spec, first_failure, one_op_model

COMPUTE = "    np.arctan(node.inputs[0].data, out=node.outputs[0].data)"
RESIZE = "    context.resize_tensor(y, x.shape)"
COUNT = "    ensure_operands(node, 1)"
TYPES = "    ensure_type(x, TensorType.FLOAT32, TensorType.FLOAT64)"
ADD = '    resolver.add_custom("Atan", ATAN)'
X, Y = "node.inputs[0].data", "node.outputs[0].data"

#: By name: what is replaced in the module's source, and with what.
MUTANTS = {
    "writes nothing": (COMPUTE, "    pass"),
    "writes the first element only": (COMPUTE, f"    {Y}[:1, :1] = np.arctan({X}[:1, :1])"),
    "leaves out the last row": (COMPUTE, f"    np.arctan({X}[:-1], out={Y}[:-1])"),
    "leaves out every second column": (COMPUTE, f"    np.arctan({X}[:, ::2], out={Y}[:, ::2])"),
    "adds to what is there": (COMPUTE, f"    np.add({Y}, np.arctan({X}), out={Y})"),
    "writes into its input": (COMPUTE, f"    np.arctan({X}, out={X}); {Y}[...] = {X}"),
    "replaces the output": (COMPUTE, f"    {Y} = np.arctan({X})"),
    "computes the tangent": (COMPUTE, f"    np.tan({X}, out={Y})"),
    "loses the sign": (COMPUTE, f"    np.arctan(np.abs({X}), out={Y})"),
    "computes in half precision": (COMPUTE, f"    {Y}[...] = np.arctan({X}.astype(np.float16))"),
    "writes rows in the reverse order": (COMPUTE, f"    np.arctan({X}[::-1], out={Y})"),
    "remembers the first answer": (
        COMPUTE,
        f"    answer = node.cached({X}.shape, (), lambda: np.arctan({X}))\n    {Y}[...] = answer",
    ),
    "remembers the first arrays": (
        COMPUTE,
        f"    x, y = node.cached({X}.shape, (), lambda: ({X}, {Y}))\n    np.arctan(x, out=y)",
    ),
    "keeps a diary": (COMPUTE, f"{COMPUTE}\n    DIARY.append({Y}.copy())"),
    "counts its runs": (COMPUTE, f"{COMPUTE}\n    DIARY.append(0)\n    np.add({Y}, len(DIARY), out={Y})"),
    "shares scratch between interpreters": (
        COMPUTE,
        f"    shared = SCRATCH.setdefault({X}.shape, np.zeros_like({X}))\n    np.copyto(shared, {X})\n    import time\n"
        f"    time.sleep(0.001)\n    np.arctan(shared, out={Y})",
    ),
    "never resizes": (RESIZE, "    pass"),
    "gives the transposed shape": (RESIZE, "    context.resize_tensor(y, x.shape[::-1])"),
    "offers its input, and reads it after it has written": (
        RESIZE,
        f"{RESIZE}\n    node.in_place = node.inputs",
        COMPUTE,
        f"    np.negative({X}, out={Y}); np.arctan({X}, out={Y})",
    ),
    "takes the operands for granted": (COUNT, "    pass"),
    "takes every type": (TYPES, "    pass"),
    "stumbles over no elements": (RESIZE, f"{RESIZE}\n    1 // x.size"),
    "serves versions that it does not know": (ADD, ADD.replace("ATAN)", "ATAN, 1, 9)")),
}


def module(*changes: str) -> Any:
    """The package's module with these changes of its source."""
    source = inspect.getsource(oplet_atan_op)
    for old, new in zip(changes[::2], changes[1::2]):
        assert source.count(old) == 1
        source = source.replace(old, new)
    made = ModuleType("spoilt")
    made.__dict__.update(DIARY=[], SCRATCH={})
    exec(compile(source, "spoilt", "exec"), made.__dict__)
    return made


def contract(*changes: str) -> OpContract:
    resolver = MutableOpResolver()
    module(*changes).register_ops(resolver)
    about = {
        "model": one_op_model("Atan", [Spec("float32", [2, 3])], [Spec("float32", [2, 3])]),
        "inputs": [np.array([[-2, -1, 0], [0.5, 3, 100]], np.float32)],
        "reference": staticmethod(np.arctan),
        "max_version": 1,
        "op_resolver": resolver,
        "plugins": [],
    }
    return type("Contract", (OpContract,), about)()


def test_the_kernel_as_it_is_keeps_the_contract() -> None:
    assert first_failure(contract()) == ""


@pytest.mark.parametrize("changes", MUTANTS.values(), ids=MUTANTS)
def test_the_contract_catches_a_kernel_that_is_slightly_wrong(changes: tuple[str, ...]) -> None:
    assert first_failure(contract(*changes))
