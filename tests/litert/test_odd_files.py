"""Files that other tools leave behind and LiteRT runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, Model
from oplet.builder import ModelBuilder
from oplet.errors import ModelError, SignatureError
from oplet.schema import tables
from oplet_tools.rewriting.rewrite import rewrite

ONES = np.ones(2, np.float32)


def changed(change: Callable[[tables.Model], object]) -> bytes:
    """A model of two signatures, `neg` and `abs`, each of a subgraph of its own, after a change of its tables."""
    builder = ModelBuilder(minimum_runtime=False)
    for op in ("NEG", "ABS"):
        graph = builder.add_subgraph(op)
        x, y = (graph.add_tensor(name, "float32", [2]) for name in "xy")
        graph.add_operator(op, [x], [y])
        graph.set_inputs(x)
        graph.set_outputs(y)
        builder.add_signature(op.lower(), {"x": x}, {"y": y}, graph)
    root = builder.settle()
    change(root)
    return Model(root).to_bytes()


def entry(name: str | None, index: int) -> tables.TensorMap:
    return tables.TensorMap(tensor_index=index) if name is None else tables.TensorMap(name=name, tensor_index=index)


def signature(position: int, **values: Any) -> bytes:
    """The model with other values in one of its signatures."""

    def change(root: tables.Model) -> None:
        for name, value in values.items():
            setattr((root.signature_defs or [])[position], name, value)

    return changed(change)


def run_main(interpreter: Interpreter) -> list[float]:
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, ONES)
    interpreter.invoke()
    answer: list[float] = interpreter.get_tensor(1).tolist()
    return answer


# Signatures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["inputs", "outputs"])
@pytest.mark.parametrize("position", [0, 1])
def test_a_signature_of_tensors_that_are_gone_is_refused_when_it_is_used_and_the_rest_runs(role: str, position: int) -> None:
    key, other = ("neg", "abs") if position == 0 else ("abs", "neg")
    name = "x" if role == "inputs" else "y"
    with pytest.warns(
        UserWarning, match=f"Signature '{key}' has its {role[:-1]} '{name}' at tensor 77, .*the rest of the model can"
    ):
        interpreter = Interpreter(model_content=signature(position, **{role: [entry(name, 77)]}))
    assert run_main(interpreter) == [-1, -1]
    assert list(interpreter.get_signature_list()) == ["neg", "abs"]
    runner = interpreter.get_signature_runner(key)
    with pytest.raises(SignatureError, match="^Invalid tensor index 77 exceeds max tensor index 2"):
        runner(x=ONES)
    with pytest.raises(ValueError, match="Invalid tensor index 77 exceeds max tensor index 2"):
        runner.get_input_details() if role == "inputs" else runner.get_output_details()
    assert interpreter.get_signature_runner(other)(x=ONES)["y"].tolist() == ([1, 1] if other == "abs" else [-1, -1])


def test_one_warning_is_given_for_a_stale_signature_and_none_for_sound_ones() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Interpreter(model_content=changed(lambda root: None))
        assert not caught
        run_main(Interpreter(model_content=signature(1, outputs=[entry("y", 77)])))
        assert [warning.filename for warning in caught] == [__file__]


def test_an_asynchronous_runner_of_a_stale_signature_is_refused() -> None:
    with pytest.warns(UserWarning, match="tensor 77"):
        interpreter = Interpreter(model_content=signature(0, outputs=[entry("y", 77)]))
    with pytest.raises((SignatureError, RuntimeError)):
        interpreter.get_async_signature_runner("neg")


def test_entries_without_a_name_are_left_out_and_of_two_with_one_name_the_last_counts() -> None:
    with pytest.warns(UserWarning, match="has outputs without a name"):
        interpreter = Interpreter(model_content=signature(1, outputs=[entry(None, 1)]))
    assert interpreter.get_signature_list()["abs"] == {"inputs": ["x"], "outputs": []}
    assert interpreter.get_signature_runner("abs")(x=ONES) == {}
    with pytest.warns(UserWarning, match="has 2 outputs called 'y', of which the last counts"):
        interpreter = Interpreter(model_content=signature(1, outputs=[entry("y", 1), entry("y", 0)]))
    assert interpreter.get_signature_runner("abs")(x=-ONES)["y"].tolist() == [-1, -1]


def test_of_two_signatures_with_one_key_the_first_counts() -> None:
    with pytest.warns(UserWarning, match="There are two signatures 'neg', of which the first counts"):
        interpreter = Interpreter(model_content=signature(1, signature_key="neg"))
    assert list(interpreter.get_signature_list()) == ["neg"]
    assert interpreter.get_signature_runner()(x=ONES)["y"].tolist() == [-1, -1]


def test_signatures_are_listed_in_the_order_of_the_file() -> None:
    interpreter = Interpreter(model_content=changed(lambda root: (root.signature_defs or []).reverse()))
    assert list(interpreter.get_signature_list()) == ["abs", "neg"]


@pytest.mark.parametrize(
    ("values", "words"),
    [({"subgraph_index": 9}, "Signature 'abs' refers to subgraph 9"), ({"signature_key": None}, "Missing exported method name")],
)
def test_what_litert_dies_of_or_refuses_stays_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Interpreter(model_content=signature(1, **values))


def test_a_stale_signature_is_no_hindrance_to_a_rewrite() -> None:
    def change(root: tables.Model) -> None:
        (root.subgraphs or [])[0].tensors.insert(1, tables.Tensor(name="dead", shape=np.array([2], np.int32)))  # type: ignore[union-attr]
        (root.subgraphs or [])[0].outputs = (root.subgraphs or [])[0].operators[0].outputs = np.array([2], np.int32)  # type: ignore[index]
        (root.signature_defs or [])[0].outputs = [entry("y", 77)]

    stripped, report = rewrite(Model.from_bytes(changed(change)), strip_unused=True)
    assert report
    with pytest.warns(UserWarning, match="Signature 'neg' has its output 'y' at tensor 77, and its subgraph has 2 tensors"):
        assert run_main(Interpreter(model_content=stripped.to_bytes())) == [-1, -1]


# Buffers and metadata ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda root: setattr(root, "buffers", []), id="no buffers in the vector"),
        pytest.param(lambda root: setattr(root.buffers[0], "data", np.ones(8, np.uint8)), id="data in buffer 0"),
        pytest.param(lambda root: setattr(root.buffers[0], "data", np.ones(2, np.uint8)), id="too little data in buffer 0"),
        pytest.param(lambda root: setattr(root, "metadata", [tables.Metadata(name="m", buffer=9)]), id="metadata without buffer"),
        pytest.param(lambda root: setattr(root, "metadata", [tables.Metadata()]), id="metadata without name"),
        pytest.param(lambda root: setattr(root, "signature_defs", []), id="no signatures in the vector"),
        pytest.param(lambda root: [setattr(t, "name", None) for s in root.subgraphs for t in s.tensors], id="no names"),
    ],
)
def test_what_no_tensor_needs_may_be_missing(tmp_path: Any, change: Callable[[tables.Model], object]) -> None:
    content = changed(change)
    assert run_main(Interpreter(model_content=content)) == [-1, -1]
    (tmp_path / "m.tflite").write_bytes(content)
    assert run_main(Interpreter(tmp_path / "m.tflite")) == [-1, -1]
    stripped, _ = rewrite(Model.from_bytes(content), strip_unused=True)
    assert run_main(Interpreter(model_content=stripped.to_bytes())) == [-1, -1]


def test_metadata_whose_buffer_is_missing_are_refused_when_they_are_read() -> None:
    model = Model.from_bytes(changed(lambda root: setattr(root, "metadata", [tables.Metadata(name="m", buffer=9)])))
    with pytest.raises(ModelError, match="no buffer 9"):
        model.metadata("m")


def test_a_tensor_s_buffer_must_exist_also_where_there_are_none() -> None:
    def change(root: tables.Model) -> None:
        root.buffers = []
        (root.subgraphs or [])[0].tensors[0].buffer = 1  # type: ignore[index]

    with pytest.raises(ModelError, match=r"out of range buffer 1 \(only 0 buffers\)"):
        Interpreter(model_content=changed(change))
