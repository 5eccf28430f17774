"""The delegate guide's MyDelegate in C++: the same nodes as the Python one, the right numbers, and the graph as before when it fails."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType
from ai_edge_litert.interpreter import load_delegate as load_in_litert
from flatbuffers import flexbuffers
from plugins.native_ops.tests.delegates.conftest import (
    Counts,
    answers,
    convolutions,
    graph_of,
    partitions,
    real_models,
    run,
)
from tests.children import run_child
from tests.places import REAL

from oplet import Interpreter, load_delegate
from oplet.errors import DelegateError, DelegateLoadError, InvokeError, OpletError
from oplet.schema.enums import Padding
from oplet.schema.options import Conv2DOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing import Graph, Op, Spec, graph_model


def test_it_claims_what_it_says_and_its_numbers_are_right(my_delegate: str) -> None:
    content = convolutions(3)
    interpreter = Interpreter(model_content=content, experimental_delegates=[load_delegate(my_delegate)])
    interpreter.allocate_tensors()
    assert partitions(interpreter) == [(0, True, [[0], [2], [4], [6]])]
    for seed in range(3):
        np.testing.assert_allclose(run(interpreter, seed)[0], answers(content, seed=seed)[0], rtol=1e-5, atol=1e-5)


def test_it_gets_the_nodes_of_composites_that_nobody_serves(my_delegate: str) -> None:
    x = Spec("float32", [1, 4, 4, 2])
    weights, bias = np.ones((2, 3, 3, 2), np.float32), np.zeros(2, np.float32)
    options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    attributes = np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8)
    composite = StableHLOCompositeOptions(name="my.layer", decomposition_subgraph_index=1, composite_attributes=attributes)
    constants = {"w": weights, "b": bias}
    conv = Op("CONV_2D", "x w b", "m", options)
    main = Graph({"x": x, **constants, "m": x, "y": x}, "x", "y", [conv, Op("STABLEHLO_COMPOSITE", "m", "y", composite)])
    inner = Graph({"x": x, **constants, "m": x, "y": x}, "x", "y", [conv, Op("CONV_2D", "m w b", "y", options)])
    content = graph_model(main, inner)
    interpreter = Interpreter(model_content=content, experimental_delegates=[load_delegate(my_delegate)])
    interpreter.allocate_tensors()
    assert partitions(interpreter) == [(0, True, [[0, 2, 3]])]
    for seed in range(3):
        np.testing.assert_allclose(run(interpreter, seed)[0], answers(content, seed=seed)[0], rtol=1e-5, atol=1e-5)


def both(content: bytes) -> bool:
    try:
        interpreter = Interpreter(model_content=content)
        interpreter.allocate_tensors()
    except OpletError:
        return False
    return {"CONV_2D", "MEAN"} <= {detail["op_name"] for detail in interpreter._get_ops_details()}


@pytest.mark.sweep
@pytest.mark.skipif(not REAL.is_dir(), reason="the recorded models lie outside the project and are not here")
def test_on_real_models_with_both_ops_it_takes_what_the_python_delegate_takes(my_delegate: str) -> None:
    seen = claimed = 0
    for name, content in real_models(5_000_000):
        if not both(content):
            continue
        reports = []
        for delegate in ("example", my_delegate):
            interpreter = Interpreter(model_content=content, experimental_delegates=[load_delegate(delegate)])
            interpreter.allocate_tensors()
            reports.append(partitions(interpreter))
        assert reports[1] == reports[0], name
        for ours, theirs in zip(run(interpreter), answers(content)):
            scale = max(float(np.abs(theirs.astype(float)).max(initial=0)), 1.0)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * scale, err_msg=name)
        seen += 1
        claimed += sum(len(partition) for _, _, found in reports[1] for partition in found)
    assert seen >= 4
    assert claimed > 50


@pytest.mark.skipif(not REAL.is_dir(), reason="the recorded models lie outside the project and are not here")
def test_the_same_library_gives_the_same_answers_in_litert(struct_delegate: str) -> None:
    seen = 0
    for name, content in [("convolutions", convolutions(2)), *real_models(3_000_000)]:
        if not both(content) or name.endswith("selfie_segmentation_landscape"):  # it has an operator that LiteRT lacks
            continue
        theirs = LiteRT(
            model_content=content,
            experimental_delegates=[load_in_litert(struct_delegate)],
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        theirs.allocate_tensors()
        kernels = sum(detail["op_name"] in ("DELEGATE", "MyDelegate") for detail in theirs._get_ops_details())
        ours = Interpreter(model_content=content, experimental_delegates=[load_delegate(struct_delegate)])
        ours.allocate_tensors()
        assert kernels == sum(len(found) for _, _, found in partitions(ours)), name
        for here, there in zip(run(ours), run(theirs)):
            scale = max(float(np.abs(there.astype(float)).max(initial=0)), 1.0)
            np.testing.assert_allclose(here, there, rtol=0, atol=1e-5 * scale, err_msg=name)
        seen += 1
    assert seen >= 3


#: Where it fails: the error, and what it says.
STAGES = {
    "initialize": (DelegateError, "my_.*Initialize"),
    "init": (DelegateError, "my_.*Init"),
    "prepare": (DelegateError, "my_.*Prepare"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_the_graph_is_as_before_when_it_fails(my_delegate: str, stage: str) -> None:
    counts = Counts(my_delegate)
    content = convolutions(2)
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    before, expected = graph_of(interpreter), answers(content)
    kind, text = STAGES[stage]
    delegate = load_delegate(my_delegate, {"fail": stage})
    with pytest.raises(kind, match=f"it was told to fail in {text.rpartition('*')[2]}") as caught:
        interpreter.modify_graph_with_delegate(delegate)
    assert Path(my_delegate).name in str(caught.value)
    assert graph_of(interpreter) == before
    np.testing.assert_array_equal(run(interpreter)[0], expected[0])
    assert counts.kernels == 0
    assert counts.inits == counts.frees
    # A second one that works is applied to it as to any other.
    interpreter.modify_graph_with_delegate(load_delegate(my_delegate))
    np.testing.assert_allclose(run(interpreter)[0], expected[0], rtol=1e-5, atol=1e-5)
    del interpreter, delegate, caught
    gc.collect()
    assert (counts.delegates, counts.kernels) == (0, 0)
    assert counts.inits == counts.frees


def test_a_delegate_that_is_not_made_is_none(my_delegate: str) -> None:
    with pytest.raises(
        DelegateLoadError, match="makes no delegate with the options {'fail': 'create'}: it does not say why"
    ) as caught:
        load_delegate(my_delegate, {"fail": "create"})
    assert isinstance(caught.value, ValueError)
    with pytest.raises(DelegateLoadError, match="unknown option colour"):
        load_delegate(my_delegate, {"colour": 3})


def test_a_run_that_fails_says_so_and_the_next_model_runs(my_delegate: str) -> None:
    interpreter = Interpreter(
        model_content=convolutions(1), experimental_delegates=[load_delegate(my_delegate, {"fail": "eval"})]
    )
    interpreter.allocate_tensors()
    for _ in range(2):
        with pytest.raises(InvokeError, match="it was told to fail in Eval"):
            run(interpreter)
    interpreter.remove_all_delegates()
    np.testing.assert_allclose(run(interpreter)[0], answers(convolutions(1))[0])


def test_everything_is_freed_when_the_interpreter_goes(my_delegate: str) -> None:
    counts = Counts(my_delegate)
    for _ in range(3):
        interpreter = Interpreter(model_content=convolutions(2), experimental_delegates=[load_delegate(my_delegate)])
        interpreter.allocate_tensors()
        run(interpreter)
        assert (counts.delegates, counts.kernels) == (1, 3)
        del interpreter
        gc.collect()
        assert (counts.delegates, counts.kernels) == (0, 0)
    assert counts.inits == counts.frees == 9


def test_after_a_resize_it_is_asked_again_with_the_new_shapes(my_delegate: str) -> None:
    counts = Counts(my_delegate)
    content = convolutions(1, free=True)
    interpreter = Interpreter(model_content=content, experimental_delegates=[load_delegate(my_delegate)])
    plain = Interpreter(model_content=content)
    for size in (4, 7, 3, 7):
        for each in (interpreter, plain):
            each.resize_tensor_input(each.get_input_details()[0]["index"], [1, size, size, 2])
            each.allocate_tensors()
        assert partitions(interpreter) == [(0, True, [[0], [2]])]
        np.testing.assert_allclose(run(interpreter)[0], run(plain)[0], rtol=1e-5, atol=1e-5)
    assert counts.inits > counts.frees > 0


def test_one_delegate_serves_two_interpreters_at_once(my_delegate: str) -> None:
    delegate = load_delegate(my_delegate)
    both_of = [Interpreter(model_content=convolutions(n), experimental_delegates=[delegate]) for n in (1, 3)]
    for interpreter in both_of:
        interpreter.allocate_tensors()
    for _ in range(2):
        for n, interpreter in zip((1, 3), both_of):
            np.testing.assert_allclose(run(interpreter)[0], answers(convolutions(n))[0], rtol=1e-5, atol=1e-5)
    del both_of[0]
    gc.collect()
    np.testing.assert_allclose(run(interpreter)[0], answers(convolutions(3))[0], rtol=1e-5, atol=1e-5)


def test_it_is_applied_beside_the_python_delegate(struct_delegate: str) -> None:
    """What the first one has, the second one sees as kernels that nobody claims."""
    content = convolutions(2)
    delegates = [load_delegate("example", {"max_partitions": 1}), load_delegate(struct_delegate)]
    interpreter = Interpreter(model_content=content, experimental_delegates=delegates)
    interpreter.allocate_tensors()
    assert [report.partitions for report in interpreter.delegation_reports()] == [[[0]], [[2], [4]]]
    np.testing.assert_allclose(run(interpreter)[0], answers(content)[0], rtol=1e-5, atol=1e-5)


def test_options_reach_it(struct_delegate: str) -> None:
    content = convolutions(3)
    for options, expected in (
        ({"max_partitions": 2}, [[0], [2]]),
        ({"min_nodes": 2}, []),
        ({"min_nodes": "1", "max_partitions": "1"}, [[0]]),
    ):
        interpreter = Interpreter(model_content=content, experimental_delegates=[load_delegate(struct_delegate, options)])
        assert [report.partitions for report in interpreter.delegation_reports()] == [expected]
    with pytest.raises(DelegateLoadError, match="null character"):
        load_delegate(struct_delegate, {"fail": "a\0b"})


def test_a_library_is_found_by_its_name_on_the_search_path(struct_delegate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, name = os.path.split(struct_delegate)
    monkeypatch.setenv("LD_LIBRARY_PATH", folder)
    assert load_delegate(name).name == name
    assert load_delegate(Path(struct_delegate)).name == name
    assert load_delegate(f"oplet-native-ops:{struct_delegate}").provenance.distribution == "oplet-native-ops"
    for wrong, text in (("libnowhere.so", "There is no library libnowhere.so"), ("./here.so", "There is no library ./here.so")):
        with pytest.raises(DelegateLoadError, match=text):
            load_delegate(wrong)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler here")
def test_a_library_of_something_else_is_refused(tmp_path: Path) -> None:
    source, target = tmp_path / "none.c", tmp_path / "libnone.so"
    source.write_text("int answer(void) { return 42; }\n")
    run_child(["cc", "-shared", "-fPIC", "-o", str(target), str(source)])
    with pytest.raises(DelegateLoadError, match="libnone.so exports no tflite_plugin_create_delegate"):
        load_delegate(str(target))
    nonsense = tmp_path / "libnonsense.so"
    nonsense.write_bytes(b"nonsense")
    with pytest.raises(DelegateLoadError, match="libnonsense.so cannot be loaded"):
        load_delegate(str(nonsense))
