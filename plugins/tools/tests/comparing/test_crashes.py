"""Engines that end the process that measures them, or never return: they are left out, told and remembered, and the program lives on."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest
from plugins.tools.tests.comparing.own_clock import OWN_CLOCK

from oplet import Interpreter, ModelBuilder, PluginManager
from oplet.model.files.cache_folder import FOLDER_VARIABLE
from oplet.ops.serving.resolver import MutableOpResolver
from oplet_testing.distributions import fake_distribution, installed
from oplet_tools.processes import run_python
from oplet_tools.tuning import choice
from oplet_tools.tuning.child import parent

#: Delegates for Slow, which negates: one that does well, and others that end the process or never return.
DELEGATES = """
import ctypes, os, sys, threading
import numpy as np
from oplet import DelegateKernel, SimpleDelegate, hookimpl

def abort():
    print("terminate called: no such instruction", file=sys.stderr, flush=True)
    os.abort()

def loop():
    threading.Event().wait()

ENDS = {"aborts": abort, "segfaults": lambda: ctypes.string_at(0), "exits": lambda: os._exit(3), "loops": loop}

class Kernel(DelegateKernel):
    def bind(self, context, node):
        name, source, output = self.name, node.inputs[0].data, node.outputs[0].data
        def run():
            print("an engine that talks", flush=True)
            if name in ENDS:
                ENDS[name]()
            np.negative(source, output)
        return run

class Fake(SimpleDelegate):
    def is_node_supported(self, context, node):
        return node.op_name == "Slow" or "it is not Slow"
    def create_kernel(self, params):
        kernel = Kernel()
        kernel.name = self.name
        return kernel

@hookimpl
def register_delegates(registry):
    for name in os.environ["FAKE_DELEGATES"].split(","):
        registry.add(name, type(name.title(), (Fake,), {"name": name}))
"""

OPS = f"""{OWN_CLOCK}
import numpy as np
from oplet import Registration, hookimpl

def invoke(context, node):
    time.sleep(0.006)
    np.negative(node.inputs[0].data, node.outputs[0].data)

@hookimpl
def register_ops(resolver):
    resolver.add_custom(
        "Slow", Registration(prepare=lambda context, node: context.resize_tensor(node.outputs[0], node.inputs[0].shape), invoke=invoke)
    )
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder with the package of the above; choices are kept in a folder of the test's."""
    site = tmp_path / "site"
    fake_distribution(site, "fakes", "1.0", {"fakes": "fakes"}, {"fakes": OPS + DELEGATES})
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("OPLET_PLUGINS", "builtin_ops,fakes")
    monkeypatch.setenv("FAKE_DELEGATES", "works")
    with installed(site):
        yield site


@pytest.fixture
def content() -> bytes:
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, out = (main.add_tensor(name, "float32", [4]) for name in ("x", "out"))
    main.add_operator("Slow", [x], [out])
    main.set_inputs(x)
    main.set_outputs(out)
    return builder.to_bytes()


def opened(content: bytes, text: str = "auto", **arguments: object) -> Interpreter:
    return Interpreter(model_content=content, experimental_delegates=text, plugins=PluginManager(), **arguments)


def refuse(*arguments: object, **options: object) -> None:
    raise OSError("no processes here")


@pytest.mark.skipif(os.name == "nt", reason="processes end by exit codes there")
def test_engines_that_end_the_process_are_left_out_told_and_remembered(site, content, monkeypatch, caplog):
    monkeypatch.setenv("FAKE_DELEGATES", "aborts,segfaults,exits,works")
    interpreter = opened(content)
    assert str(interpreter.choice.candidate) == "works + builtin_ops"
    assert interpreter.choice.in_process == ""
    why = {trial.candidate.delegates[0]: trial.why for trial in interpreter.choice.trials if trial.crashed}
    assert why == {
        "aborts": "it ended its process: SIGABRT (terminate called: no such instruction)",
        "segfaults": "it ended its process: SIGSEGV (an engine that talks)",
        "exits": "it ended its process: exit code 3 (an engine that talks)",
    }
    for text in (caplog.messages[0], interpreter.explain()[0].why):
        assert "aborts + builtin_ops is left out" in text
        assert "SIGABRT" in text
    monkeypatch.setattr(choice, "measure_in_child", refuse)
    again = opened(content).choice
    assert again.remembered
    assert again.trials == interpreter.choice.trials


def test_an_engine_that_never_returns_is_stopped_and_left_out(site, content, monkeypatch):
    monkeypatch.setenv("FAKE_DELEGATES", "loops,works")
    made = opened(content, "auto:way_seconds=5").choice
    assert str(made.candidate) == "works + builtin_ops"
    [loops] = [trial for trial in made.trials if trial.crashed]
    assert loops.candidate.delegates == ("loops",)
    assert loops.why == "it was not done after 5 s, and was stopped"


def test_nothing_is_started_where_the_choice_is_remembered(site, content, monkeypatch):
    assert not opened(content).choice.remembered
    monkeypatch.setattr(parent, "python_process", refuse)
    assert opened(content).choice.remembered


def test_where_no_process_can_be_started_this_one_measures_and_says_so(site, content, monkeypatch, caplog):
    monkeypatch.setattr(parent, "python_process", refuse)
    with caplog.at_level(logging.INFO, "oplet.tuning"):
        made = opened(content).choice
    assert str(made.candidate) == "works + builtin_ops"
    assert made.in_process == "no process can be started here (no processes here)"
    assert f"is measured in this process, since {made.in_process}." in caplog.text


def test_where_measuring_did_not_begin_this_process_measures(site, content, monkeypatch):
    monkeypatch.setattr(parent, "_CODE", "raise SystemExit(7)")
    made = opened(content).choice
    assert str(made.candidate) == "works + builtin_ops"
    assert "exit code 7" in made.in_process


def test_operators_of_the_program_itself_are_measured_in_it(site, content):
    made = opened(content, op_resolver=MutableOpResolver()).choice
    assert str(made.candidate) == "works + builtin_ops"
    assert made.in_process == "it has operators that are objects of this program (op_resolver=)"


def test_plugins_that_were_given_as_entry_points_are_measured_in_the_program(tmp_path, site, content):
    with installed(site) as entry_points:
        manager = PluginManager(entry_points=entry_points)
        made = Interpreter(model_content=content, experimental_delegates="auto", plugins=manager).choice
    assert made.in_process == "its plugins are objects of this program"


def test_a_frozen_program_is_not_started_once_more(site, content, monkeypatch):
    monkeypatch.setattr(parent, "python_process", refuse)
    monkeypatch.setattr("sys.executable", "/opt/program")
    assert opened(content).choice.in_process.startswith("this program brings its own Python")


PROGRAM = """
import sys
from oplet import Interpreter
print("once")
choice = Interpreter({path!r}, experimental_delegates="auto").choice
print(choice.candidate, choice.remembered, choice.in_process or "in a child")
"""


@pytest.mark.parametrize("way", ["a script", "-c"])
def test_a_program_without_a_guarded_main_runs_once_and_may_read_its_input(site, content, tmp_path: Path, way: str) -> None:
    (tmp_path / "model.tflite").write_bytes(content)
    code = PROGRAM.format(path=str(tmp_path / "model.tflite"))
    script = tmp_path / "program.py"
    script.write_text(code)
    arguments = ["-c", code] if way == "-c" else [str(script)]
    done = run_python(arguments, folders=[site], capture_output=True, text=True, input="")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["once", "works + builtin_ops False in a child"]


def test_what_the_program_looks_into_for_modules_the_child_does_too(site, content, monkeypatch, tmp_path):
    """Paths in sys.path that no environment variable names, among them the current folder."""
    monkeypatch.chdir(tmp_path)
    assert opened(content).choice.in_process == ""
    np.testing.assert_equal(list(tmp_path.glob("*.tflite")), [])
