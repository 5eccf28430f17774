"""The current folder, which may be a stranger's, has no say in what is compiled, kept and run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

#: In place of PyYAML, which need not be installed.
YAML = "import json\ndef safe_load(file): return json.load(file)\n"

RUN = """
    import json, sys
    opened = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event in ("open", "os.listdir", "os.scandir") else None)
    import numpy as np
    {before}
    from oplet import Interpreter, PluginManager
    from oplet.schema.options import FullyConnectedOptions
    from oplet_testing.one_op import Spec, one_op_model
    arrays = np.ones((4, 8), np.float32), np.zeros(4, np.float32)
    model = one_op_model("FULLY_CONNECTED", [Spec("float32", [2, 8]), *arrays], [Spec("float32", [2, 4])], FullyConnectedOptions())
    interpreter = Interpreter(model_content=model, plugins=PluginManager(load=["compiled_ops", "builtin_ops"]))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((2, 8), np.float32))
    interpreter.invoke()
    import oplet_compiled_ops.library.compiler  # as where a kernel is on no disk
    [report] = interpreter.explain()
    from numba.core import config
    config.reload_config()
    answer = {{"served": report.plugin, "value": interpreter.get_tensor(3).tolist(), "folder": config.CACHE_DIR}}
    answer |= {{"help": config.SHOW_HELP, "opened": opened}}
    print(json.dumps(answer))
"""


def run(folder: Path, before: str = "", **variables: str) -> dict[str, Any]:
    """What a program in a folder with a planted file sees."""
    there, modules = folder / "there", folder / "modules"
    there.mkdir()
    modules.mkdir()
    (modules / "yaml.py").write_text(YAML)
    (there / ".numba_config.yaml").write_text(json.dumps({"cache_dir": str(folder / "planted"), "show_help": 1}))
    program = folder / "program.py"
    program.write_text(textwrap.dedent(RUN).format(before=before))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    paths = os.pathsep.join(filter(None, (str(modules), os.environ.get("PYTHONPATH", ""))))
    environment |= {"PYTHONPATH": paths, "OPLET_PREFER": "", **variables}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=there, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert (answer["served"], answer["value"]) == ("compiled_ops", [[8.0] * 4] * 2)
    return answer


def test_settings_in_the_current_folder_are_not_read(tmp_path: Path) -> None:
    answer = run(tmp_path)
    assert (answer["folder"], answer["help"]) == ("", 0)
    assert not (tmp_path / "planted").exists()
    there = [path for path in answer["opened"] if not os.path.isabs(path) or Path(path).is_relative_to(tmp_path / "there")]
    assert [path for path in there if not path.isdigit()] == []  # descriptors are numbers


def test_settings_of_the_environment_hold(tmp_path: Path) -> None:
    answer = run(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "mine"), NUMBA_SHOW_HELP="1", OPLET_CACHE_DIR=str(tmp_path / "oplet"))
    assert (answer["folder"], answer["help"]) == (str(tmp_path / "mine"), 1)
    assert list((tmp_path / "oplet").rglob("*.code"))  # which is oplet's own
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize("folder", [None, "mine"])
def test_a_program_that_imported_numba_there_keeps_its_settings_but_for_the_folder_of_machine_code(
    folder: str | None, tmp_path: Path
) -> None:
    mine = {} if folder is None else {"NUMBA_CACHE_DIR": str(tmp_path / folder)}
    answer = run(tmp_path, "import numba", **mine)
    assert (answer["folder"], answer["help"]) == (mine.get("NUMBA_CACHE_DIR", ""), 1)
    assert not (tmp_path / "planted").exists()
