"""The composites that litert-torch writes, against PyTorch's recorded answers: `composites/make.py` made the models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oplet import Interpreter, MutableOpResolver, load_delegate
from oplet_testing import WrappingDelegate

Array = NDArray[Any]
FILE = Path(__file__).with_name("composites.npz")


def delegated(make: Callable[[], Any]) -> Callable[..., Any]:
    return lambda **arguments: Interpreter(**arguments, experimental_delegates=[make()])


def node_by_node() -> WrappingDelegate:
    return WrappingDelegate(lambda context, node: node.op_name != "STABLEHLO_COMPOSITE", dynamic=False)


ENGINES: dict[str, Callable[..., Any]] = {
    "numpy": lambda **arguments: Interpreter(**arguments, plugins=["oplet-builtin-ops"]),
    "installed": Interpreter,
    "two threads": lambda **arguments: Interpreter(**arguments, num_threads=2),
    "node by node": delegated(node_by_node),
    "litert": delegated(lambda: load_delegate("litert")),
    "openvino": delegated(lambda: load_delegate("openvino")),
}
NEEDS = {"litert": "oplet_litert_delegate", "openvino": "oplet_openvino_delegate", "installed": "oplet_compiled_ops"}


@cache
def recorded() -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {}
    with np.load(FILE) as arrays:
        for key, value in arrays.items():
            name, _, part = key.rpartition("/")
            found.setdefault(name, {})[part] = value
    return found


CASES = sorted(recorded())
#: What the kernels leave to the decomposition: another factor than the weight; dimensions that are alike.
DECLINED = {
    "rms_norm in a layer, scaled": "its decomposition multiplies by a constant of its own",
    "layer_norm [2, 8, 3, 8] [8] 0.25": "has as many values as the last, and either may be meant",
    "layer_norm [2, 8, 3, 8] [8] 1e-05": "has as many values as the last, and either may be meant",
}
SERVED = [name for name in CASES if name.split()[0] in ("rms_norm", "layer_norm", "group_norm")]


def answers(interpreter: Any, case: dict[str, Array]) -> list[Array]:
    interpreter.allocate_tensors()
    places = {detail["name"]: detail["index"] for detail in interpreter.get_input_details()}
    runner = interpreter.get_signature_runner()
    arguments = {name: value for name, value in case.items() if name.startswith("args_")}
    assert len(arguments) == len(places)
    found = runner(**arguments)
    return [found[name] for name in sorted(found, key=lambda name: int(name.removeprefix("output_")))]


def check(found: list[Array], case: dict[str, Array]) -> None:
    expected = [value for name, value in sorted(case.items()) if name.startswith("output_")]
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * max(1, np.abs(other).max()))


def test_every_composite_that_litert_torch_leaves_in_files_is_recorded() -> None:
    assert {name.split()[0] for name in CASES} == {
        "cache_update",
        "fused_sdpa_cache_update",
        "group_norm",
        "layer_norm",
        "qkv_norm_rope",
        "rms_norm",
        "rope",
        "runtime_bmm",
        "short_conv_step",
        "swiglu",
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_composites_give_what_pytorch_gives(name: str, engine: str) -> None:
    if engine in NEEDS:
        pytest.importorskip(NEEDS[engine])
    case = recorded()[name]
    interpreter = ENGINES[engine](model_content=case["model"].tobytes())
    for _ in range(2):
        check(answers(interpreter, case), case)


@pytest.mark.parametrize("name", SERVED)
def test_kernels_take_what_litert_torch_writes_or_say_why_not(name: str) -> None:
    case = recorded()[name]
    interpreter = Interpreter(model_content=case["model"].tobytes(), plugins=["oplet-builtin-ops"])
    check(answers(interpreter, case), case)
    (report,) = [report for report in interpreter.explain() if report.composite]
    if name in DECLINED:
        assert DECLINED[name] in report.why
    else:
        assert "its decomposition runs" not in report.why


@pytest.mark.parametrize("name", SERVED)
def test_kernels_and_decompositions_agree(name: str) -> None:
    """A resolver that serves STABLEHLO_COMPOSITE before every kernel of a composite: none is asked."""
    case = recorded()[name]
    content = case["model"].tobytes()
    (composite,) = {r.composite for r in Interpreter(model_content=content).explain() if r.composite}
    other = content.replace(composite.encode(), b"my" + composite[2:].encode())
    decomposed = Interpreter(model_content=other, op_resolver=MutableOpResolver())
    (report,) = [report for report in decomposed.explain() if report.composite]
    assert "its decomposition runs" in report.why
    for one, expected in zip(answers(decomposed, case), answers(Interpreter(model_content=content), case)):
        np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", [name for name in CASES if name not in SERVED])
def test_what_nobody_serves_becomes_one_partition(name: str) -> None:
    case = recorded()[name]
    claims_all = WrappingDelegate(lambda context, node: node.op_name != "STABLEHLO_COMPOSITE", dynamic=True)
    interpreter = Interpreter(model_content=case["model"].tobytes(), experimental_delegates=[claims_all])
    check(answers(interpreter, case), case)
    assert [report.op for report in interpreter.explain() if report.subgraph == 0] == ["Wrapping"]
