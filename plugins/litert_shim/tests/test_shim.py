"""The shim answers what is not installed, leaves alone what is, and costs a start of Python next to nothing."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests import wheelhouse
from tests.children import run_child
from tests.places import ROOT

from oplet import ModelBuilder

PACKAGE = ROOT / "plugins" / "litert_shim"
#: Takes LiteRT's own packages away from a program, as on a machine that has neither.
WITHOUT = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ("ai_edge_litert", "tflite_runtime") else PathFinder.find_spec(name, path, target)
    @classmethod
    def find_distributions(cls, context=None):
        hidden = str(getattr(context, "name", "")).replace("-", "_") in ("ai_edge_litert", "tflite_runtime")
        return iter(()) if hidden else PathFinder.find_distributions(context)
sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    tensors = [graph.add_tensor(name, "float32", [2]) for name in ("x", "y")]
    graph.add_operator("ADD", [tensors[0], tensors[0]], [tensors[1]])
    graph.set_inputs(tensors[0])
    graph.set_outputs(tensors[1])
    builder.save(tmp_path / "model.tflite")
    return tmp_path / "model.tflite"


def program(text: str, tmp_path: Path, *, installed: bool = False, shim: str = "on", hook: bool = True) -> Any:
    """Run a program as Python runs it where the shim is installed; its last line is JSON."""
    site = tmp_path / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text((PACKAGE / "oplet_litert_shim.pth").read_text() if hook else "")
    path = tmp_path / "program.py"
    path.write_text(("" if installed else WITHOUT) + textwrap.dedent(text))
    folders = [site, PACKAGE / "src", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    child = run_child(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "OPLET_LITERT_SHIM": shim},
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "imports",
    [
        "from tflite_runtime.interpreter import Interpreter, load_delegate",
        "import tflite_runtime.interpreter as tflite; Interpreter = tflite.Interpreter",
        "import ai_edge_litert.interpreter; Interpreter = ai_edge_litert.interpreter.Interpreter",
        "from ai_edge_litert.interpreter import *",
    ],
)
def test_a_program_runs_on_oplet_where_neither_package_is_installed(tmp_path: Path, model: Path, imports: str) -> None:
    found = program(
        f"""
        import json, importlib, importlib.metadata, importlib.util
        import numpy as np
        {imports}
        interpreter = Interpreter(model_path={str(model)!r}, num_threads=1)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.float32([3, 4]))
        interpreter.invoke()
        import tflite_runtime, ai_edge_litert
        print(json.dumps([
            Interpreter.__module__.partition(".")[0],
            interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist(),
            tflite_runtime.__version__,
            importlib.metadata.version("ai-edge-litert"),
            importlib.util.find_spec("tflite_runtime") is not None,
        ]))
        """,
        tmp_path,
    )
    assert found == ["oplet", [6.0, 8.0], "2.14.0", "2.3.0", True]


@pytest.mark.parametrize(("shim", "hook"), [("off", True), ("on", False)])
def test_without_the_hook_or_switched_off_nothing_is_answered(tmp_path: Path, shim: str, hook: bool) -> None:
    text = """
        import json, importlib.util
        try:
            import tflite_runtime.interpreter
            found = True
        except ModuleNotFoundError as error:
            found = str(error)
        print(json.dumps([found, importlib.util.find_spec("ai_edge_litert") is None]))
        """
    assert program(text, tmp_path, shim=shim, hook=hook) == ["No module named 'tflite_runtime'", True]


def test_an_installed_package_stays_what_it_is_with_and_without_its_modules(tmp_path: Path) -> None:
    real = tmp_path / "site" / "tflite_runtime"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("__version__ = '1.2.3'")
    (real / "interpreter.py").write_text("Interpreter = 'the real one'")
    found = program(
        """
        import json
        from tflite_runtime import __version__, interpreter
        try:
            import tflite_runtime.metrics_portable
            lacking = "answered"
        except ModuleNotFoundError as error:
            lacking = str(error)
        print(json.dumps([__version__, interpreter.Interpreter, lacking]))
        """,
        tmp_path,
        installed=True,
    )
    assert found == ["1.2.3", "the real one", "No module named 'tflite_runtime.metrics_portable'"]


def test_oplet_and_its_plugins_still_find_litert_missing(tmp_path: Path) -> None:
    found = program(
        """
        import json
        import tflite_runtime.interpreter, ai_edge_litert.interpreter  # as a program that is answered
        from oplet_tools.benchmarking.litert_runner import LiteRTError, import_litert
        from oplet_tools.comparing import references
        told = []
        try:
            import_litert()
        except LiteRTError as error:
            told.append(str(error))
        try:
            exec(references._CHILD)  # what `oplet compare --with litert` runs in a process of its own
        except SystemExit as ended:
            told.append(str(ended.code))
        print(json.dumps(told))
        """,
        tmp_path,
    )
    assert [line.partition(":")[0] for line in found] == ["Comparing with LiteRT takes its package", "not installed"]


def test_what_is_refused_says_so_in_a_sentence(tmp_path: Path) -> None:
    found = program(
        """
        import json
        told = []
        for name in ("ai_edge_litert.aot", "ai_edge_litert.pywrap_genai_ops"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                told.append(str(error))
        print(json.dumps(told))
        """,
        tmp_path,
    )
    assert [sentence.split(",")[0] for sentence in found] == [
        "ai_edge_litert.aot is not answered by oplet",
        "ai_edge_litert.pywrap_genai_ops is not answered by oplet",
    ]


def test_the_newer_api_and_the_tools_of_models_are_answered(tmp_path: Path, model: Path) -> None:
    pytest.importorskip("oplet_compiled_model")
    found = program(
        f"""
        import json
        import numpy as np
        from ai_edge_litert.compiled_model import CompiledModel, HardwareAccelerator
        from ai_edge_litert.options import CpuOptions, Options
        from ai_edge_litert.tools import flatbuffer_utils
        options = Options(HardwareAccelerator.CPU, CpuOptions(num_threads=1))
        model = CompiledModel.from_file({str(model)!r}, options=options)
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        inputs[0].write(np.float32([3, 4]))
        model.run_by_index(0, inputs, outputs)
        names = [tensor.name.decode() for tensor in flatbuffer_utils.read_model({str(model)!r}).subgraphs[0].tensors]
        print(json.dumps([outputs[0].read(2, np.float32).tolist(), names]))
        """,
        tmp_path,
    )
    assert found == [[6.0, 8.0], ["x", "y"]]


def test_a_start_of_python_imports_one_small_module_and_nothing_of_oplet(tmp_path: Path) -> None:
    found = program(
        "import json, sys; print(json.dumps(sorted(name for name in sys.modules if name.startswith(('oplet', 'numpy')))))",
        tmp_path,
    )
    assert found == ["oplet_litert_shim"]


def test_the_state_is_told(tmp_path: Path) -> None:
    text = "import json; from oplet_litert_shim.answers import states; print(json.dumps(states()))"
    for shim, words in (
        ("on", "tflite_runtime: answered by oplet "),
        ("off", "tflite_runtime: not installed, and not answered, as OPLET"),
    ):
        assert any(line.startswith(words) for line in program(text, tmp_path, installed=True, shim=shim)), shim
    real = tmp_path / "site" / "tflite_runtime"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("")
    assert any("which the shim leaves as it is" in line for line in program(text, tmp_path, installed=True))


@pytest.mark.environment
def test_the_wheel_has_the_line_that_python_runs_and_no_folder_of_another_package() -> None:
    names = zipfile.ZipFile(wheelhouse.wheel("litert_shim")).namelist()
    assert "oplet_litert_shim.pth" in names
    assert {name.partition("/")[0] for name in names if not name.partition("/")[0].endswith(".dist-info")} == {
        "oplet_litert_shim",
        "oplet_litert_shim.pth",
    }
