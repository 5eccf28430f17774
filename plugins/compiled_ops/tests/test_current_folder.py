"""The current folder, which may be a stranger's, has no say in which machine code runs, and a run leaves none anywhere."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.children import run_child

from oplet_compiled_ops.library.opening import SUFFIX, folder, library
from oplet_testing import Spec, one_op_model

RUN = """
import json, sys
opened, started = [], []

def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "ctypes.dlopen"):
        opened.append(str(arguments[0]))
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork"):
        started.append(event)

sys.addaudithook(watch)
import numpy as np
from oplet import Interpreter
interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(0, np.ones((2, 8), np.float32))
interpreter.invoke()
print(json.dumps({"opened": opened, "started": started, "served": interpreter.explain()[0].distribution}))
"""


def test_nothing_of_the_current_folder_is_opened_nothing_is_compiled_and_no_machine_code_is_left(tmp_path: Path) -> None:
    there, cache, temporary = (tmp_path / name for name in ("there", "cache", "temporary"))
    for made in (there / "libraries", cache, temporary):
        made.mkdir(parents=True)
    level = library().level
    for planted in (f"probe{SUFFIX}", f"{level}{SUFFIX}", f"libraries/{level}{SUFFIX}", ".numba_config.yaml"):
        (there / planted).write_bytes(b"not a library")
    model, program = tmp_path / "model.tflite", tmp_path / "program.py"
    x = Spec("float32", (2, 8))
    model.write_bytes(one_op_model("EXP", [x], [x]))
    program.write_text(RUN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPLET_")}
    environment |= {"OPLET_CACHE_DIR": str(cache), "TMPDIR": str(temporary), "TEMP": str(temporary), "TMP": str(temporary)}
    for _ in range(3):  # the second stores the model's plan, which the third takes
        done = run_child([sys.executable, str(program), str(model)], cwd=there, env=environment)
        assert done.stderr == ""
        told = json.loads(done.stdout)
        assert told["served"] == "oplet-compiled-ops"
        assert told["started"] == []
        paths = [Path(path) for path in told["opened"] if not path.isdigit()]  # descriptors are numbers
        assert [path for path in paths if not path.is_absolute() and path.suffix] == []
        assert [path for path in paths if path.is_relative_to(there)] == []
        assert Path(folder()) / f"{level}{SUFFIX}" in paths
    assert list(temporary.iterdir()) == []
    assert {path.suffix for path in cache.rglob("*") if path.is_file()} <= {".plan", ""}
