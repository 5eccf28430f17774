"""Names and sizes that Python's own functions stumble over: errors of oplet, in one sentence."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oplet.runtime.execution.model_runtime as interpreting
from oplet import Interpreter, Model, ModelBuilder
from oplet.errors import LimitError, TensorError
from oplet_tools.running.outputs import save_outputs

ODD = ["\udcff\udcfe", "a\0b", "x" * 70_000, "é" * 33_000]


def _model() -> bytes:
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = main.add_tensor("x", "float32", [2]), main.add_tensor("y", "float32", [2])
    main.set_inputs(x)
    main.set_outputs(y)
    main.add_operator("RELU", [x], [y])
    return builder.to_bytes()


@pytest.mark.parametrize("name", ODD)
def test_an_output_whose_name_no_archive_can_hold_is_refused_before_the_file_is_touched(name: str, tmp_path: Path) -> None:
    target = tmp_path / "out.npz"
    target.write_bytes(b"what was there")
    with pytest.raises(TensorError, match=r"cannot hold the output '.*write a \.json") as caught:
        save_outputs({"fine": np.zeros(1), name: np.zeros(2)}, target)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600
    assert target.read_bytes() == b"what was there"
    save_outputs({name: np.zeros(2)}, tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text("ascii")) == {name: [0.0, 0.0]}
    save_outputs({name: np.zeros(2)}, tmp_path / "out.npy")


def test_names_that_leave_the_folder_when_unpacked_are_no_members_of_an_archive(tmp_path: Path) -> None:
    for name in ("../evil", "/etc/evil", "a/../../evil", "..\\evil", "C:/evil"):
        with pytest.raises(TensorError, match="leads elsewhere"):
            save_outputs({name: np.zeros(2)}, tmp_path / "out.npz")
    save_outputs({"model/dense:0": np.zeros(2), "a..b": np.ones(1)}, tmp_path / "out.npz")
    assert zipfile.ZipFile(tmp_path / "out.npz").namelist() == ["model/dense:0.npy", "a..b.npy"]


def test_no_memory_for_a_copy_is_a_limit_error(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = Interpreter(model_content=_model())
    interpreter.allocate_tensors()

    class Full:
        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        def array(self, *_: Any) -> Any:
            raise MemoryError("Unable to allocate 8.00 GiB")

    monkeypatch.setattr(interpreting, "np", Full())
    with pytest.raises(LimitError, match="not enough memory for a copy of tensor 0 'x'.*8.00 GiB"):
        interpreter.get_tensor(0)


def test_no_memory_for_the_bytes_of_a_model_is_a_limit_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("oplet.model.save.writing.pieces", full)
    with pytest.raises(LimitError, match="not enough memory"):
        Model.from_bytes(_model()).to_bytes()


def test_names_that_python_cannot_encode_are_shown_escaped() -> None:
    from oplet.schema.naming import shown

    assert shown("a\ud800\udcff\0") == "a\\ud800\\xff\\x00"
