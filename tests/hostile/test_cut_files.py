"""Files that shrink after they were opened: an error of oplet says so, and the process lives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oplet import ModelBuilder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody cut a file that is mapped")

_CALLS = {
    "get_tensor": "interpreter.get_tensor(2)",
    "tensor": "int(interpreter.tensor(2)().sum())",
    "get_tensor_details": "interpreter.get_tensor_details()",
    "get_output_details": "interpreter.get_output_details()",
    "invoke": "interpreter.invoke()",
    "buffer": "sum(model.buffer(i).sum() for i in range(1, len(model.outline.buffers)) if model.buffer(i) is not None)",
    "tensor_bytes": "sum(int(model.tensor_bytes(t).sum()) for t in tensors if t.buffer or t.external_buffer)",
    "custom_options": "[model.custom_options(o) for o in fresh.root.subgraphs[0].operators]",
    "metadata": "model.metadata('min_runtime_version').tobytes()",
    "root": "fresh.root.subgraphs[0].tensors[0].shape",
    "to_bytes": "model.to_bytes()",
    "save": "model.save(path + '.new')",
    "from_model": "ModelBuilder.from_model(model)",
    "builder.to_bytes": "builder.to_bytes()",
    "builder.save": "builder.save(path + '.new')",
    "external_buffer": "model.external_buffer(1).sum()",
    "modify_graph_with_delegate": "interpreter.modify_graph_with_delegate(taker)",
    "remove_all_delegates": "interpreter.remove_all_delegates()",
    "content": "viewing.get_tensor(2)",
    "memmap": "mapping.get_tensor(2)",
}

_PROGRAM = """
import mmap, os, sys
import numpy as np
from oplet import Interpreter, Model, ModelBuilder
from oplet.errors import OpletError
from oplet.delegates.delegate import Delegate

path, beside, cut, expression, use_mmap = sys.argv[1:]
use_mmap = use_mmap == "True"

class Taker(Delegate):
    name = "taker"
    def is_node_supported(self, *arguments):
        return bool(sum(int(t.data.sum()) for t in arguments[-1].inputs if t is not None and t.is_constant))
    def __getattr__(self, name):
        raise AttributeError(name)

interpreter = Interpreter(path, use_mmap=use_mmap)
interpreter.allocate_tensors()
interpreter.invoke()
model = Model.open(path, use_mmap=use_mmap)
fresh = Model.open(path, use_mmap=use_mmap)
tensors = model.root.subgraphs[0].tensors
[model.tensor_bytes(t) for t in tensors]
builder = ModelBuilder.from_model(model)
if beside == "no" and use_mmap:
    with open(path, "rb") as file:
        viewing = Interpreter(model_content=memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    mapping = Interpreter(model_content=memoryview(np.memmap(path, np.uint8, "r")))
    viewing.allocate_tensors()
    mapping.allocate_tensors()
taker = None
if "taker" in expression:
    from oplet.testing import distributions
    from oplet_example_delegate import ExampleDelegate
    taker = ExampleDelegate()
os.truncate(cut, 16)
try:
    eval(expression)
except OpletError as error:
    assert "changed while it was in use" in str(error), error
    print("refused")
else:
    print("went on")
"""


def large(folder: Path, *, outside: bool) -> tuple[Path, Path]:
    """A model of several pages, and the file that its constants lie in."""
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    size = 1 << 16
    x, y = main.add_tensor("x", "float32", [size]), main.add_tensor("y", "float32", [size])
    data = b"\1" * (4 * size)
    place = {"external_buffer": builder.add_external_buffer("w.bin", data)} if outside else {"buffer": builder.add_buffer(data)}
    w = main.add_tensor("w", "float32", [size], **place)
    main.add_operator("ADD", [x, w], [y])
    main.set_inputs(x)
    main.set_outputs(y, w)
    path = folder / "m.tflite"
    builder.save(path)
    return path, folder / "w.bin" if outside else path


def end(folder: Path, what: str, *, outside: bool = False, use_mmap: bool = True) -> str:
    path, cut = large(folder, outside=outside)
    command = [sys.executable, "-c", _PROGRAM, str(path), "yes" if outside else "no", str(cut), _CALLS[what], str(use_mmap)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.strip()


@pytest.mark.parametrize("what", [call for call in _CALLS if call not in ("external_buffer", "custom_options")])
def test_a_call_on_a_file_that_was_cut_is_an_error_and_not_the_end_of_the_process(what: str, tmp_path: Path) -> None:
    assert end(tmp_path, what) == "refused"


@pytest.mark.parametrize("what", ["get_tensor", "tensor", "invoke", "tensor_bytes", "from_model", "save", "external_buffer"])
def test_so_is_one_on_a_file_beside_the_model_that_was_cut(what: str, tmp_path: Path) -> None:
    assert end(tmp_path, what, outside=True) == "refused"


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("what", ["get_tensor", "invoke", "tensor_bytes", "from_model", "to_bytes", "get_tensor_details"])
def test_a_file_that_was_read_into_memory_may_be_cut(what: str, outside: bool, tmp_path: Path) -> None:
    assert end(tmp_path, what, outside=outside, use_mmap=False) == "went on"
