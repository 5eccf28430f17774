"""Files that shrink after they were opened: an error of oplet says so, and the process lives."""

from __future__ import annotations

import json
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
    "buffer": "sum(model.buffer(i).sum() for i in range(1, len(model.lazy_root.buffers)) if model.buffer(i) is not None)",
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
import json, mmap, os, sys, traceback
import numpy as np
from oplet import Interpreter, Model, ModelBuilder, load_delegate
from oplet.errors import OpletError

def attempt(path, cut, expression, use_mmap):
    how = {} if use_mmap else {"use_mmap": False}
    interpreter = Interpreter(path, plugins=["oplet-builtin-ops"], **how)
    interpreter.allocate_tensors()
    interpreter.invoke()
    model, fresh = Model.open(path, **how), Model.open(path, **how)
    tensors = model.root.subgraphs[0].tensors
    [model.tensor_bytes(t) for t in tensors]
    builder = ModelBuilder.from_model(model)
    taker = load_delegate("example") if "taker" in expression else None
    if cut == path and use_mmap:
        with open(path, "rb") as file:
            viewing = Interpreter(model_content=memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), plugins=["oplet-builtin-ops"])
        mapping = Interpreter(model_content=memoryview(np.memmap(path, np.uint8, "r")), plugins=["oplet-builtin-ops"])
        viewing.allocate_tensors()
        mapping.allocate_tensors()
    os.truncate(cut, 16)
    try:
        eval(expression, {**globals(), **locals()})
    except OpletError as error:
        assert "changed while it was in use" in str(error), error
        return 10
    return 20

ends = {}
warm = ModelBuilder()
warm.add_subgraph().set_inputs()
warm.subgraphs[0].set_outputs()
Interpreter(model_content=warm.to_bytes(), plugins=["oplet-builtin-ops"])
for name, *job in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        status = 1
        try:
            status = attempt(*job)
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    status = os.waitpid(child, 0)[1]
    ends[name] = {10 << 8: "refused", 20 << 8: "went on"}.get(status, "ended with status %d" % status)
print(json.dumps(ends))
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


def ends(folder: Path, calls: list[str], *, outside: bool = False, use_mmap: bool = True) -> dict[str, str]:
    """What came of each call in a process of its own."""
    jobs = []
    for call in calls:
        (folder / call).mkdir()
        path, cut = large(folder / call, outside=outside)
        jobs.append((call, str(path), str(cut), _CALLS[call], use_mmap))
    command = [sys.executable, "-c", _PROGRAM, json.dumps(jobs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_a_call_on_a_file_that_was_cut_is_an_error_and_not_the_end_of_the_process(tmp_path: Path) -> None:
    calls = [call for call in _CALLS if call not in ("external_buffer", "custom_options")]
    assert ends(tmp_path, calls) == dict.fromkeys(calls, "refused")


def test_so_is_one_on_a_file_beside_the_model_that_was_cut(tmp_path: Path) -> None:
    calls = ["get_tensor", "tensor", "invoke", "tensor_bytes", "from_model", "save", "external_buffer"]
    assert ends(tmp_path, calls, outside=True) == dict.fromkeys(calls, "refused")


@pytest.mark.parametrize("outside", [False, True])
def test_a_file_that_was_read_into_memory_may_be_cut(outside: bool, tmp_path: Path) -> None:
    calls = ["get_tensor", "invoke", "tensor_bytes", "from_model", "to_bytes", "get_tensor_details"]
    assert ends(tmp_path, calls, outside=outside, use_mmap=False) == dict.fromkeys(calls, "went on")
