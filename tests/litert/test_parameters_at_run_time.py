"""Parameters whose shapes are known only when they are fed: allocation waits for them, as LiteRT's does."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
from tests.children import run_child
from tests.kinds import part
from tests.litert.parameter_cases import CASES, FORMS, ParameterModel, answers, model, models
from tests.places import ROOT

from oplet import Interpreter, ModelBuilder
from oplet.errors import InvokeError, PrepareError


def same(ours: Any, theirs: Any) -> bool:
    """Whether two lists of arrays are equal, floats within the last digits."""
    return len(ours) == len(theirs) and all(
        a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True)
        for a, b in zip(ours, theirs)
    )


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_a_parameter_gives_the_same_answer_in_whatever_form_it_arrives(name: str) -> None:
    [expected] = [answers(Interpreter, case)["resized"] for case in [model(name, (), "exact")]]
    assert not isinstance(expected, str), expected
    for case in models(name):
        found = answers(Interpreter, case)
        for way in ("resized", "signature"):
            assert not isinstance(found[way], str), (case.parameters, case.form, way, found[way])
            assert same(found[way], expected), (case.parameters, case.form, way)


@pytest.mark.parametrize(
    "name",
    [
        "slice", "slice of int64", "pad", "padv2", "mirror_pad", "tile", "tile of int64", "transpose", "broadcast_to",
        "space_to_batch_nd", "batch_to_space_nd", "reverse_sequence", "dilate", "scatter_nd", "matrix_set_diag", "where",
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["free", "first", "vector", "rankless"])
def test_tensors_are_allocated_while_parameters_have_placeholder_shapes(name: str, form: str) -> None:
    subset = CASES[name].parameters[-1:] if name == "matrix_set_diag" else CASES[name].parameters
    assert answers(Interpreter, model(name, subset, form))["allocated"] == ""


@pytest.mark.parametrize("name", ["slice", "pad", "tile", "space_to_batch_nd", "dilate", "broadcast_to"])
def test_parameters_that_keep_their_placeholder_shape_are_refused_in_the_run(name: str) -> None:
    case = model(name, CASES[name].parameters[:1], "vector" if name != "broadcast_to" else "rankless")
    interpreter = Interpreter(model_content=case.content)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
    with pytest.raises(InvokeError, match=f"{CASES[name].op}.* failed to invoke"):
        interpreter.invoke()


@pytest.mark.parametrize("name", ["slice", "pad", "tile", "dilate", "space_to_batch_nd", "reverse_sequence", "broadcast_to"])
def test_constant_parameters_of_a_wrong_shape_are_refused_while_preparing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    position = case.parameters[0]
    wrong = [value if i != position else np.ones((5, 1), value.dtype) for i, value in enumerate(case.inputs)]
    monkeypatch.setitem(CASES, name, case._replace(inputs=wrong))
    with pytest.raises(PrepareError, match=f"{case.op}.* failed to prepare"):
        Interpreter(model_content=model(name, (), "exact").content).allocate_tensors()


# LiteRT --------------------------------------------------------------------------------------------------------

_CHILD = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from functools import partial
from tests.litert.parameter_cases import answers
cases = pickle.load(sys.stdin.buffer)
ways = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")
found = [[answers(partial(Interpreter, experimental_op_resolver_type=OpResolverType[way]), case) for way in ways] for case in cases]
with open(sys.argv[2], "wb") as file:
    pickle.dump(found, file)
"""


def litert(cases: list[ParameterModel], folder: Any) -> list[list[dict[str, Any]]]:
    """What LiteRT's three ways make of models, in a process of its own."""
    root = str(ROOT)
    answer = folder / "answers"
    command = [sys.executable, "-c", _CHILD, root, str(answer)]
    run_child(command, input=pickle.dumps(cases), cwd=root, text=False)
    found: list[list[dict[str, Any]]] = pickle.loads(answer.read_bytes())
    return found


@pytest.mark.sweep(cases=True)
@pytest.mark.parametrize("plugins", [None, ["no:compiled_ops"]], ids=["all plugins", "numpy"])
def test_wherever_one_of_litert_s_ways_allocates_and_runs_so_does_oplet_with_its_answer(plugins: Any, tmp_path: Any) -> None:
    pytest.importorskip("ai_edge_litert")
    from oplet import PluginManager

    manager = PluginManager(load=plugins)
    cases = [case for name in CASES for case in models(name)]
    assert len(cases) > 700
    assert {case.form for case in cases} == set(FORMS)
    cases = list(part().among(cases, lambda case: f"{case.case} {case.parameters} {case.form}"))
    wrong = []
    for case, theirs in zip(cases, litert(cases, tmp_path)):
        ours = answers(lambda **given: Interpreter(plugins=manager, **given), case)
        what = f"{case.case} {case.parameters} {case.form}"
        if ours["allocated"] and not all(way["allocated"] for way in theirs):
            wrong.append(f"{what}: not allocated: {ours['allocated']}")
        for step in ("resized", "signature"):
            known = [way[step] for way in theirs if not isinstance(way[step], str)]
            if known and isinstance(ours[step], str):
                wrong.append(f"{what}, {step}: {ours[step]}")
            elif known and not any(same(ours[step], answer) for answer in known):
                wrong.append(f"{what}, {step}: another answer")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("weights_type", ["float32", "int8"])
def test_rows_that_do_not_fit_the_weights_yet_are_waited_for(weights_type: str) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, "float32", [None, None]) for name in "xy")
    values = np.arange(-6, 6).reshape(3, 4).astype(weights_type)
    weights = graph.add_tensor("weights", weights_type, [3, 4], data=values, scale=None if weights_type == "float32" else 1.0)
    graph.add_operator("FULLY_CONNECTED", [x, weights, None], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    interpreter = Interpreter(model_content=builder.to_bytes())
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=r"cannot be cut into rows of 4"):
        interpreter.invoke()
    rows = np.array([[128, -127, 0, 128], [1, 0, 0, 0]], np.float32)  # they reach over 255 whole steps each
    interpreter.resize_tensor_input(x, rows.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, rows)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(y), rows @ values.T.astype(np.float32), atol=1e-4)
