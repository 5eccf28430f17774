"""What the delegate takes, what it leaves alone and why, and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest

from oplet import NUMPY_BUFFER, BackendBuffer, BufferAttribute, Interpreter, IoType, load_delegate
from oplet.builder import sparsify
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import AddOptions, Conv2DOptions, FullyConnectedOptions, ReducerOptions, ReshapeOptions
from oplet_openvino_delegate import delegate as module
from oplet_openvino_delegate import translators
from oplet_testing import Graph, Op, Spec, graph_model, invoke, one_op_model, run_op

F32 = np.float32
VECTOR = Spec(F32, [4])
CHAIN = graph_model(
    Graph(
        dict.fromkeys("abcdef", VECTOR),
        "a",
        "f",
        [
            Op("TANH", "a", "b"),
            Op("ABS", "b", "c"),
            Op("ATAN2", "c a", "d"),
            Op("NEG", "d", "e"),
            Op("ADD", "e e", "f", AddOptions()),
        ],
    )
)


def report(model: bytes, **options: object) -> tuple[list[list[int]], dict[int, str]]:
    interpreter = Interpreter(model_content=model, experimental_delegates=[load_delegate("openvino", options)])
    [found] = interpreter.delegation_reports()
    return found.partitions, found.unsupported


def test_it_takes_what_it_translates_and_says_why_not_the_rest() -> None:
    partitions, refused = report(CHAIN)
    assert partitions == [[0, 1], [3, 4]]
    assert refused == {2: "ATAN2 is none of the operators that are translated"}


def test_a_partition_that_would_only_copy_is_left_alone_beside_others() -> None:
    shape = {"new_shape": [2, 2]}
    copying = [Op("RESHAPE", "d", "e", ReshapeOptions(**shape)), Op("EXPAND_DIMS", "e z", "f")]
    tensors = {"a": VECTOR, "b": VECTOR, "c": VECTOR, "d": VECTOR, "e": Spec(F32, [2, 2]), "f": Spec(F32, [1, 2, 2])}
    zero = {"z": Spec(np.int32, [], data=np.int32(0))}
    ops = [Op("TANH", "a", "b"), Op("ATAN2", "b a", "d"), *copying]
    partitions, refused = report(graph_model(Graph({**tensors, **zero}, "a", "f", ops)))
    assert partitions == [[0]]
    assert refused[2] == refused[3] == "its partition would only copy, which the runtime does faster"
    assert report(graph_model(Graph({**tensors, **zero}, "d", "f", copying)))[0] == [[0, 1]]


def test_options_limit_the_partitions() -> None:
    assert report(CHAIN, max_partitions=1)[0] == [[0, 1]]
    partitions, refused = report(CHAIN, min_nodes=3)
    assert not partitions
    assert refused[0] == "its partition of 2 nodes is left out (min_nodes=3, max_partitions=0)"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"min_nodes": "many"}, "'min_nodes=many' is none of its options"),
        ({"threads": 1}, "'threads=1' is none of its options"),
        ({"device": "TPU"}, "device=TPU is none of CPU, GPU, NPU, AUTO"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        load_delegate("openvino", options)


def test_a_device_that_is_not_there_is_refused_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.compiling, "devices", lambda: ["CPU"])
    with pytest.raises(ValueError, match=r"device=GPU\.1 is not there: on this machine OpenVINO finds CPU"):
        load_delegate("openvino", {"device": "gpu.1"})


def test_auto_leaves_the_device_to_openvino() -> None:
    x = np.array([-1, 0, 1, 2], F32)
    [answer] = run_op(CHAIN, x, experimental_delegates=[load_delegate("openvino", {"device": "AUTO"})])
    np.testing.assert_allclose(answer, run_op(CHAIN, x)[0], rtol=1e-3)


def test_compiled_partitions_are_kept_where_one_says(tmp_path: Path) -> None:
    for _ in range(2):
        report(CHAIN, cache_dir=tmp_path)
    assert len(list(tmp_path.glob("*.blob"))) == 2


def test_a_partition_that_does_not_compile_is_given_back_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(model: openvino.Model, device: str, told: dict[str, Any]) -> openvino.CompiledModel:
        raise RuntimeError("no kernel for it")

    monkeypatch.setattr(module.compiling, "compiled", refuses)
    partitions, refused = report(CHAIN)
    assert not partitions
    assert refused[0] == "OpenVINO does not run its partition: no kernel for it"
    x = np.array([-1, 0, 1, 2], F32)
    np.testing.assert_array_equal(run_op(CHAIN, x, experimental_delegates=[load_delegate("openvino")])[0], run_op(CHAIN, x)[0])


IMAGE, FILTER, BIAS = Spec(F32, [1, 4, 4, 2]), np.ones((3, 2, 2, 2), F32), np.ones(3, F32)
ONE = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1)
SIGN_BIT = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1, fused_activation_function=ActivationFunctionType.SIGN_BIT)
AXES = np.array([1, 2], np.int32)


@pytest.mark.parametrize(
    ("op", "inputs", "out", "options", "version", "why"),
    [
        ("CONV_2D", [IMAGE, FILTER, BIAS], [1, 3, 3, 3], ONE, 99, "of version 99, it knows up to 8"),
        ("CONV_2D", [IMAGE, FILTER, BIAS], [1, 3, 3, 3], SIGN_BIT, 1, "SIGN_BIT"),
        ("CONV_2D", [IMAGE, FILTER.astype(np.int8), BIAS], [1, 3, 3, 3], ONE, 1, "it works on FLOAT32"),
        ("CONV_2D", [IMAGE, FILTER, Spec(F32, [3])], [1, 3, 3, 3], ONE, 1, "is no constant bias"),
        ("CONV_2D", [IMAGE, FILTER[..., :0], BIAS], [1, 3, 3, 3], ONE, 1, "has no elements"),
        ("CONV_2D", [IMAGE, FILTER, BIAS], [1, 3, 3, 3], Conv2DOptions(), 1, "strides, sizes or dilations is below 1"),
        ("CONV_2D", [IMAGE, FILTER, BIAS], [1, 9, 9, 3], ONE, 1, "OpenVINO would make f32"),
        ("CONV_2D", [IMAGE], [1, 3, 3, 3], ONE, 1, "it has 1 inputs, not 2 to 3"),
        ("MEAN", [IMAGE, Spec(np.int32, [2])], [1, 2], ReducerOptions(), 1, "is not constant"),
        ("MEAN", [IMAGE, np.array([4], np.int32)], [1, 2], ReducerOptions(), 1, "the axes [4] are not all in"),
        ("MEAN", [Spec(F32, [0, 2]), AXES[:1]], [0], ReducerOptions(), 1, "has no elements"),
        ("ABS", [Spec(np.int64, [2])], [2], None, 1, "it works on FLOAT32"),
        ("ABS", [Spec(F32, [1] * 7)], [1] * 7, None, 1, "more than 6 dimensions"),
        ("ABS", [Spec(F32, [2], variable=True)], [2], None, 1, "which stays with the runtime"),
        ("ABS", [None], [2], None, 1, "its input 0 is left out"),
    ],
)
def test_what_it_would_not_compute_rightly_it_leaves_alone(
    op: str, inputs: Any, out: Any, options: Any, version: int, why: str
) -> None:
    """Asked directly: most of these would not get past the built-in kernels."""
    type = inputs[0].type if inputs[0] is not None else F32
    content = one_op_model(op, inputs, [Spec(type, out)], options)
    [node] = Interpreter(model_content=content)._subgraphs[0].nodes
    node.version = version
    reason = module.refusal(node)
    if not reason:
        with pytest.raises(module.Untranslatable) as caught:
            module.compile_partition(
                [node],
                [t for t in node.inputs if t is not None],
                node.outputs,
                module.Engine("CPU", {}, False),
                lambda nbytes: None,
            )
        reason = caught.value.reason
    assert why in reason


def test_a_resize_to_what_it_cannot_do_gives_the_nodes_back_and_another_takes_them_again() -> None:
    interpreter = Interpreter(model_content=CHAIN, experimental_delegates=[load_delegate("openvino")])
    for size, partitions in ((4, [[0, 1], [3, 4]]), (0, []), (3, [[0, 1], [3, 4]])):
        interpreter.resize_tensor_input(0, [size])
        interpreter.allocate_tensors()
        x = np.linspace(-1, 1, size, dtype=F32)
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        np.testing.assert_allclose(
            interpreter.get_tensor(5), run_op(CHAIN, x, resize=True)[0] if size else x, rtol=1e-5, atol=1e-6
        )
        assert interpreter.delegation_reports()[0].partitions == partitions


def test_a_model_that_it_runs_as_a_whole_runs_asynchronously() -> None:
    model = graph_model(Graph(dict.fromkeys("ab", VECTOR), "a", "b", [Op("TANH", "a", "b")]))
    interpreter = Interpreter(model_content=model, experimental_delegates=[load_delegate("openvino")])
    interpreter.allocate_tensors()
    runner = interpreter.get_async_signature_runner()
    runner.prepare_backends()
    x, y = np.array([-1, 0, 1, 2], F32), np.zeros(4, F32)
    names = [
        (next(iter(details)), io)
        for details, io in ((runner.get_input_details(), IoType.INPUT), (runner.get_output_details(), IoType.OUTPUT))
    ]
    with runner.create_task() as task:
        for (name, io), array in zip(names, (x, y)):
            buffer = runner.register_buffer(io, BackendBuffer(array), {BufferAttribute.RESOURCE_TYPE_NAME: NUMPY_BUFFER})
            task.set_buffer(name, buffer)
        runner.invoke_async(task)
        runner.wait(task)
    np.testing.assert_allclose(y, np.tanh(x), rtol=1e-5)


def test_the_readme_has_every_operator() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    translators.translator("ADD")
    assert len(translators._KNOWN) > 90
    assert not [name for name in translators._KNOWN if f"`{name}`" not in text]


@pytest.mark.parametrize("type", [F32, np.int8])
def test_constants_that_are_stored_sparse_stay_with_the_runtime(type: Any) -> None:
    values = np.eye(8, dtype=type) * 3
    scale: dict[str, Any] = {"scale": 0.5, "zero_point": 0} if type is np.int8 else {}
    packed, sparsity = sparsify(values)
    weights = [Spec(type, [8, 8], data=data, sparsity=table, **scale) for data, table in ((packed, sparsity), (values, None))]
    models = [
        one_op_model("FULLY_CONNECTED", [Spec(F32, [1, 8]), each, None], [Spec(F32, [1, 8])], FullyConnectedOptions(), version=8)
        for each in weights
    ]
    x = np.arange(8, dtype=F32)[None]
    sparse = Interpreter(model_content=models[0], experimental_delegates=[load_delegate("openvino")])
    [found] = sparse.delegation_reports()
    assert "is stored sparse" in found.unsupported[0]
    np.testing.assert_allclose(invoke(sparse, x)[0], run_op(models[1], x)[0], rtol=1e-5)
