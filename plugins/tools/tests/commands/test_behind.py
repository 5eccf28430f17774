"""`oplet behind`: programs that were written for LiteRT run unmodified, and oplet answers their imports."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.places import ROOT

from oplet import Interpreter, ModelBuilder
from oplet_tools.behind.import_hooks import INTERCEPTED, intercept_imports

IMPORTS = {
    "tflite_runtime": "import tflite_runtime.interpreter as tflite; Interpreter = tflite.Interpreter",
    "ai_edge_litert": "from ai_edge_litert.interpreter import Interpreter, load_delegate, OpResolverType",
    "package": "import ai_edge_litert.interpreter; Interpreter = ai_edge_litert.interpreter.Interpreter",
    "star": "from tflite_runtime.interpreter import *",
    "tensorflow inside": "from tensorflow.lite.python.interpreter import Interpreter",
}
#: Doubles x in a model beside it, and tells what it was given.
PROGRAM = """
import sys, os
{imports}
import neighbour
assert __name__ == "__main__"
interpreter = Interpreter(model_path=os.path.join(os.path.dirname(__file__), "model.tflite"))
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], [3.0, 4.0] * 1)
interpreter.invoke()
print(Interpreter.__module__, sys.argv[1:], interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist())
"""


@pytest.fixture
def program(tmp_path):
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    tensors = [graph.add_tensor(name, "float32", [2]) for name in ("x", "y")]
    graph.add_operator("ADD", [tensors[0], tensors[0]], [tensors[1]])
    graph.set_inputs(tensors[0])
    graph.set_outputs(tensors[1])
    builder.save(tmp_path / "model.tflite")
    (tmp_path / "neighbour.py").write_text("")

    def write(imports: str, more: str = "") -> Path:
        path = tmp_path / "program.py"
        path.write_text(PROGRAM.format(imports=imports).replace("[3.0, 4.0] * 1", "__import__('numpy').float32([3, 4])") + more)
        return path

    return write


@pytest.fixture(autouse=True)
def _as_before():
    argv = sys.argv
    yield
    assert sys.argv is argv
    assert not [finder for finder in sys.meta_path if type(finder).__name__ == "ImportHooks"]
    assert not {name for name in sys.modules if name in INTERCEPTED and type(sys.modules[name]).__name__ == "_InterceptedModule"}
    sys.modules.pop("neighbour", None)
    sys.modules.pop("program", None)


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS)
def test_a_program_gets_oplet_under_litert_s_names(oplet, program, imports):
    if imports.startswith("from tensorflow.") and find_spec("tensorflow") is None:
        pytest.skip("needs tensorflow")
    path = program(imports)
    ran = oplet("behind", path, "--flag", "x", "-p", "-h")
    assert ran.code == 0, ran.err
    assert ran.out == "oplet_tools.behind.litert_names ['--flag', 'x', '-p', '-h'] [6.0, 8.0]\n"
    [line] = [line for line in ran.err.splitlines() if line.startswith("oplet: ")]
    assert "model.tflite: 1 node by oplet-" in line
    assert ran.err.splitlines()[-1] == line


def test_nodes_that_nothing_serves_are_told_as_nobody_s(oplet, program):
    path = program(IMPORTS["tflite_runtime"])
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, "float32", [2]) for name in "xy")
    graph.add_operator("edgetpu-custom-op", [x], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    (path.parent / "model.tflite").write_bytes(builder.to_bytes())
    ran = oplet("behind", path)
    assert ran.code == 1
    assert "Edge TPU compiler" in ran.err
    assert ran.err.splitlines()[-1].endswith("model.tflite: 1 node by nobody")


def test_a_module_runs_as_python_m_runs_it(oplet, program, monkeypatch):
    path = program(IMPORTS["tflite_runtime"])
    monkeypatch.chdir(path.parent)
    ran = oplet("behind", "-m", "program", "a")
    assert (ran.code, ran.out) == (0, "oplet_tools.behind.litert_names ['a'] [6.0, 8.0]\n")


def test_exit_codes_and_tracebacks_are_the_program_s_own(oplet, program):
    ran = oplet("behind", program(IMPORTS["tflite_runtime"], "sys.exit(7)"))
    assert ran.code == 7
    assert "model.tflite: 1 node" in ran.err
    ran = oplet("behind", program(IMPORTS["tflite_runtime"], "raise KeyError('gone')"))
    assert ran.code == 1
    assert "KeyError: 'gone'" in ran.err
    assert "oplet_tools" not in ran.err.replace("\\", "/")
    assert "program.py" in ran.err.splitlines()[1]
    ran = oplet("behind", program(IMPORTS["tflite_runtime"], "Interpreter('none.tflite')"))
    assert ran.code == 1
    assert "ModelError" in ran.err


def test_a_program_without_an_interpreter_and_none_at_all_are_told(oplet, tmp_path):
    (tmp_path / "plain.py").write_text("print('hello')")
    ran = oplet("behind", tmp_path / "plain.py")
    assert (ran.code, ran.out) == (0, "hello\n")
    assert (
        ran.err
        == "oplet: the program imported no interpreter that oplet answers; tensorflow.lite where TensorFlow is missing takes --tensorflow\n"
    )
    ran = oplet("behind", tmp_path / "none.py")
    assert ran.code == 1
    assert "There is no program" in ran.err
    for words in (("-m", "no_such_module"), (ROOT / "examples/digits/digits_int8.tflite",)):
        ran = oplet("behind", *words)
        assert ran.code == 1
        assert "Traceback" not in ran.err, "a traceback of oplet's own lines"


def test_other_names_and_litert_s_privates_are_refused_in_a_sentence(oplet, program):
    more = """
for thing, name in ((interpreter, "_native_handle"), (interpreter, "nonsense")):
    assert not hasattr(thing, name)
try:
    interpreter._native_handle()
except AttributeError as error:
    print(error)
from tflite_runtime import interpreter as module
try:
    module.nonsense
except AttributeError as error:
    print(error)
"""
    ran = oplet("behind", program(IMPORTS["tflite_runtime"], more))
    assert ran.code == 0, ran.err
    assert "_native_handle is private to LiteRT's interpreter" in ran.out
    assert "oplet answers tflite_runtime.interpreter with Delegate, Interpreter" in ran.out


def test_delegates_of_the_command_line_serve_interpreters_that_have_none_and_import_litert_itself(oplet, program):
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("oplet_litert_delegate")
    for imports in (IMPORTS["ai_edge_litert"], IMPORTS["tflite_runtime"]):
        ran = oplet("behind", "--delegate", "litert", "--num-threads", "2", program(imports))
        assert ran.code == 0, ran.err
        assert "[6.0, 8.0]" in ran.out
        assert "1 node by the delegate litert" in ran.err


def test_tf_lite_is_answered_where_tensorflow_is_installed():
    tensorflow = pytest.importorskip("tensorflow", exc_type=ImportError)
    del tensorflow
    with intercept_imports({"Interpreter": 1, "load_delegate": 2, "OpResolverType": 3}, ()) as used:
        from tensorflow._api.v2 import lite

        assert (lite.Interpreter, lite.experimental.load_delegate, lite.experimental.OpResolverType) == (1, 2, 3)
        assert lite.TFLiteConverter is not None
        assert isinstance(used.answered, dict)
    assert lite.Interpreter is not Interpreter
    assert lite.Interpreter.__module__.startswith(("tensorflow", "ai_edge_litert"))


def test_tf_lite_is_answered_where_tensorflow_is_not_installed(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
        monkeypatch.delitem(sys.modules, name)

    class WithoutTensorFlow(PathFinder):
        @classmethod
        def find_spec(cls, fullname, path=None, target=None):
            return None if fullname.startswith("tensorflow") else PathFinder.find_spec(fullname, path, target)

    monkeypatch.setattr(sys, "meta_path", [WithoutTensorFlow if f is PathFinder else f for f in sys.meta_path])
    with intercept_imports({"Interpreter": 1, "load_delegate": 2, "OpResolverType": 3}, ()), pytest.raises(ModuleNotFoundError):
        import tensorflow.lite  # many programs ask so whether TensorFlow is there
    with intercept_imports({"Interpreter": 1, "load_delegate": 2, "OpResolverType": 3}, (), without_tensorflow=True):
        import tensorflow as tf

        assert (tf.lite.Interpreter, tf.lite.experimental.load_delegate) == (1, 2)
        with pytest.raises(AttributeError, match="tensorflow is not installed, and oplet answers its interpreter alone"):
            tf.constant(1)
    assert "tensorflow" not in sys.modules


def test_oplet_interpreter_is_a_module_of_litert_s_names():
    import oplet.interpreter as module

    assert module.Interpreter is Interpreter
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    public = {name for name, value in vars(litert).items() if getattr(value, "__module__", "") == litert.__name__}
    assert {name for name in public if not name.startswith("_")} <= set(module.__all__)
    assert np.all([hasattr(module, name) for name in module.__all__])


PROCESSES = """
import multiprocessing, sys
from {module} import Interpreter

def ran(_):
    from {module} import Interpreter as inside
    return Interpreter.__module__, inside.__module__, Interpreter({model!r}).get_input_details()[0]["shape"].tolist()

if __name__ == "__main__":
    for how in sys.argv[1:]:
        with multiprocessing.get_context(how).Pool(1) as pool:
            print(how, pool.map(ran, [1])[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no ways but one to start a process")
def test_processes_that_the_program_starts_are_answered_by_oplet_too(program, tmp_path):
    program(IMPORTS["tflite_runtime"])  # which makes the model
    (tmp_path / "starts.py").write_text(
        PROCESSES.format(module="tflite_runtime.interpreter", model=str(tmp_path / "model.tflite"))
    )
    command = [sys.executable, "-c", "import sys; from oplet_tools.cli.main import main; main(sys.argv[1:])"]
    ways = ["fork", "spawn", "forkserver"]
    done = subprocess.run([*command, "behind", str(tmp_path / "starts.py"), *ways], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{way} ('oplet_tools.behind.litert_names', 'oplet_tools.behind.litert_names', [2])" for way in ways
    ]


def test_threads_that_outlive_the_program_s_last_line_are_answered_too(oplet, program):
    more = """
import threading, time
def late():
    time.sleep(0.2)
    from ai_edge_litert.interpreter import Interpreter
    print("late", Interpreter.__module__)
threading.Thread(target=late).start()
"""
    ran = oplet("behind", program(IMPORTS["tflite_runtime"], more))
    assert ran.code == 0, ran.err
    assert ran.out.endswith("late oplet_tools.behind.litert_names\n")


def test_a_script_finds_what_python_gives_it(oplet, program, monkeypatch):
    more = """
import __main__, pickle
class Thing: pass
assert __main__.Thing is Thing and type(pickle.loads(pickle.dumps(Thing()))) is Thing
print([__file__, sys.argv[0], __package__, __spec__ if "__spec__" in globals() else "none", sys.path[0]])
"""
    path = program(IMPORTS["tflite_runtime"], more)
    monkeypatch.chdir(path.parent)
    ran = oplet("behind", "program.py")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == str([str(path), "program.py", None, None, str(path.parent)])


def test_a_module_with_relative_imports_runs(oplet, program, monkeypatch):
    path = program(IMPORTS["tflite_runtime"])
    package = path.parent / "package_behind"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("import importlib\nlitert = importlib.import_module('ai_edge_litert.interpreter')\n")
    (package / "__main__.py").write_text("from .inner import litert\nprint(litert.Interpreter.__module__, __package__)\n")
    monkeypatch.chdir(path.parent)
    ran = oplet("behind", "-m", "package_behind")
    assert (ran.code, ran.out) == (0, "oplet_tools.behind.litert_names package_behind\n"), ran.err
    for name in [name for name in sys.modules if name.startswith("package_behind")]:
        del sys.modules[name]


def test_a_delegate_that_nobody_brings_is_told_before_the_program_runs(oplet, program):
    for wrong in ("nonsense", "", ":"):
        ran = oplet("behind", f"--delegate={wrong}", program(IMPORTS["tflite_runtime"], "print('ran')"))
        assert (ran.code, ran.out) == (1, "")
        assert "Traceback" not in ran.err
        assert f"'{wrong}'" in ran.err or wrong in ran.err


def test_details_have_the_keys_of_litert_s(program):
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    path = str(program("").parent / "model.tflite")
    ours, theirs = Interpreter(path), litert.Interpreter(path)
    for method in ("get_tensor_details", "get_input_details", "get_output_details"):
        for one, other in zip(getattr(ours, method)(), getattr(theirs, method)()):
            assert set(other) <= set(one)
            assert set(other["quantization_parameters"]) <= set(one["quantization_parameters"])
