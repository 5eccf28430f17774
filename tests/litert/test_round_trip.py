"""Models written with constants inside and outside, and large ones: nothing is lost, whoever reads them next."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, Model, ModelBuilder
from oplet.errors import ModelError
from oplet.schema import options
from oplet_testing import invoke, litert_interpreter


def adder(*constants: np.ndarray) -> ModelBuilder:
    """y = x + constants[0][-4:]... a model whose answer depends on the last values of each constant."""
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    total = main.add_tensor("x", "float32", [4])
    main.set_inputs(total)
    for number, constant in enumerate(constants):
        whole = main.add_tensor(f"constant{number}", "float32", [constant.size], data=constant)
        begin = main.add_tensor(f"begin{number}", "int32", [1], data=np.array([constant.size - 4], np.int32))
        size = main.add_tensor(f"size{number}", "int32", [1], data=np.array([4], np.int32))
        part = main.add_tensor(f"part{number}", "float32", [4])
        main.add_operator("SLICE", [whole, begin, size], [part], options.SliceOptions())
        following = main.add_tensor(f"sum{number}", "float32", [4])
        main.add_operator("ADD", [total, part], [following], options.AddOptions())
        total = following
    main.set_outputs(total)
    return builder


def ask(interpreter: Any) -> list[float]:
    answer: list[float] = invoke(interpreter, np.ones(4, np.float32))[0].tolist()
    return answer


@pytest.mark.parametrize("constants", ["inside", "outside"])
def test_both_runtimes_read_constants_where_they_are_written(constants: Any, tmp_path: Path) -> None:
    theirs = litert_interpreter()
    path = tmp_path / "model.tflite"
    model = adder(np.arange(8, dtype=np.float32), np.arange(3000, dtype=np.float32)).build()
    model.save(path, constants=constants)
    assert all((b.offset > 1) == (constants == "outside") for b in (Model.open(path).root.buffers or [])[1:4])
    wanted = (1 + np.arange(4, 8) + np.arange(2996, 3000)).tolist()
    assert ask(Interpreter(model_path=str(path))) == wanted
    assert ask(theirs(model_path=str(path))) == wanted
    assert ask(theirs(model_content=path.read_bytes())) == wanted


@pytest.mark.sweep
def test_a_model_of_more_than_two_gigabytes_is_written_read_and_run(tmp_path: Path) -> None:
    theirs = litert_interpreter()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") if hasattr(os, "sysconf") else 0
    if memory < 6 << 30 or shutil.disk_usage(tmp_path).free < 8 << 30:
        pytest.skip("needs 6 GB of memory and 8 GB of disk")
    path = tmp_path / "large.tflite"
    quarters = [np.zeros(150_000_000, np.float32) for _ in range(4)]
    for number, quarter in enumerate(quarters):
        quarter[-4:] = number + 1
    builder = adder(*[quarter[:4] for quarter in quarters])
    root = builder.build().root
    buffers, tensors = root.buffers or [], (root.subgraphs or [])[0].tensors or []
    for tensor in tensors:  # the constants join the tables as they are: a builder would copy them
        number = int((tensor.name or "x0")[-1]) if (tensor.name or "x")[-1].isdigit() else 0
        if (tensor.name or "").startswith("constant"):
            tensor.shape = np.array([quarters[number].size], np.int32)
            buffers[tensor.buffer].data = quarters[number].view(np.uint8)
        elif (tensor.name or "").startswith("begin"):
            buffers[tensor.buffer].data = np.array([quarters[number].size - 4], np.int32).view(np.uint8)
    Model(root).save(path)
    assert path.stat().st_size > 2**31
    assert ask(Interpreter(model_path=str(path))) == [11.0] * 4
    assert ask(theirs(model_path=str(path))) == [11.0] * 4
    with pytest.raises(ModelError, match="write its constants 'outside'"):
        Model(root).save(path, constants="inside")
    again = tmp_path / "again.tflite"
    Model.open(path).save(again)
    assert again.stat().st_size == path.stat().st_size
    assert ask(Interpreter(model_path=str(again))) == [11.0] * 4
