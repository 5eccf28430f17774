"""`--custom-op-library`: a file that is no package serves operators, through whichever plugin opens it."""

from __future__ import annotations

import json
import re
import sys

import pytest
from tests.places import EXAMPLES

from oplet.schema.enums import BuiltinOperator
from oplet_testing.distributions import fake_distribution
from oplet_tools.running.delegates import parse_op_library

MODEL = EXAMPLES / "atan" / "atan.tflite"
#: Opens files that end in .lib; what is in them is a factor by which the operator's answer is too large.
OPENER = """
import numpy as np
from oplet import MutableOpResolver, Registration, hookimpl
from oplet.errors import PluginError

@hookimpl
def open_op_library(path, operators):
    if not path.endswith(".lib"):
        return None
    try:
        factor = float(open(path).read())
    except OSError:
        raise PluginError(f"There is no library {path}.")
    def prepare(context, node):
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)
    def bind(context, node):
        x, y = node.inputs[0].data, node.outputs[0].data
        return lambda: np.multiply(np.arctan(x), factor, out=y)
    resolver = MutableOpResolver()
    if isinstance(operators, str):
        operators = {"Atan": operators}
    for op in operators or {"Atan": ""}:
        add = resolver.add_custom if isinstance(op, str) else resolver.add_builtin
        add(op, Registration(prepare=prepare, bind=bind, library=path))
    return resolver
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A file that an installed plugin opens."""
    fake_distribution(tmp_path / "site", "opener", "1.5", {"opener": "opener"}, {"opener": OPENER})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    path = tmp_path / "atan.lib"
    path.write_text("1.0")
    yield path
    sys.modules.pop("opener", None)


@pytest.mark.parametrize(
    ("text", "path", "operators"),
    [
        ("libatan.so", "libatan.so", None),
        ("/a/b.so:Fn", "/a/b.so", "Fn"),
        ("b.so:Fn=Atan", "b.so", {"Atan": "Fn"}),
        ("b.so:Fn=My=Op:1", "b.so", {"My=Op:1": "Fn"}),
        ("b.so:tflite::ops::Register_A=A", "b.so", {"A": "tflite::ops::Register_A"}),
        ("b.so:tflite::ops::Register_A", "b.so", "tflite::ops::Register_A"),
        ("b.so:Fn=CONV_2D", "b.so", {BuiltinOperator.CONV_2D: "Fn"}),
        (r"C:\a\b.dll:Fn", r"C:\a\b.dll", "Fn"),
        (r"C:\a\b.dll", r"C:\a\b.dll", None),
        ("b.so:", "b.so:", None),
        ("b.so:1x", "b.so:1x", None),
        ("", "", None),
    ],
)
def test_a_text_names_a_file_a_function_and_an_op(text, path, operators):
    assert parse_op_library(text) == (path, operators)


def test_a_model_runs_with_it_and_says_so(oplet, library):
    library.write_text("2.0")
    ran = oplet("run", MODEL, "--custom-op-library", library)
    assert ran.code == 0, ran.err
    assert "1 by opener 1.5 (atan.lib)" in ran.out
    answers = [json.loads(oplet("run", MODEL, *more, "--json").out) for more in ([], ["--custom-op-library", library])]
    [plain], [twice] = [[output["values"] for output in answer["outputs"]] for answer in answers]
    assert twice == pytest.approx([2 * value for value in plain])


def test_who_would_run_it_is_told(oplet, library):
    [atan] = [
        op for op in json.loads(oplet("inspect", MODEL, "--custom-op-library", library, "--json").out)["ops"] if op["custom"]
    ]
    assert (atan["distribution"], atan["plugin"], atan["library"]) == ("opener", "atan.lib", "atan.lib")
    assert atan["why"] == "overrides oplet-atan-op 0.1.0"
    assert "opener 1.5 (atan.lib)" in oplet("inspect", MODEL, "--custom-op-library", library).out
    [atan] = [op for op in json.loads(oplet("doctor", MODEL, "--custom-op-library", library, "--json").out) if op["custom"]]
    assert atan["provider"] == "opener 1.5 (atan.lib)"


def test_a_function_and_an_op_may_be_named(oplet, library):
    ran = oplet(
        "doctor", MODEL, "--custom-op-library", f"{library}:Fn=ADD", "--custom-op-library", f"{library}:Fn=Atan", "--json"
    )
    assert {op["op"]: op["provider"] for op in json.loads(ran.out)} == {
        "ADD": "opener 1.5 (atan.lib)",
        "Atan": "opener 1.5 (atan.lib)",
    }


def test_it_is_compared_with_what_packages_bring(oplet, library):
    ran = oplet("compare", MODEL, "--custom-op-library", library)
    assert (ran.code, ran.err) == (0, "")
    # oplet-compiled-ops serves the other node, where it is installed.
    assert re.search("Other kernels than the built-in ones run [12] of 2 nodes\\.", ran.out)
    library.write_text("1.5")
    ran = oplet("compare", MODEL, "--custom-op-library", library)
    assert ran.code == 1
    assert "node 1 (Atan)" in ran.out


def test_it_is_measured(oplet, library):
    few = ["--num-runs", "1", "--min-secs", "0", "--warmup-runs", "0", "--warmup-min-secs", "0"]
    ran = oplet("benchmark", MODEL, "--custom-op-library", library, *few, "--json")
    assert ran.code == 0, ran.err
    assert oplet("benchmark", MODEL, "-p", "no:atan_op", *few).code == 1
    assert oplet("benchmark", MODEL, "-p", "no:atan_op", "--custom-op-library", library, *few).code == 0


@pytest.mark.parametrize("command", ["run", "benchmark", "compare"])
def test_auto_which_chooses_among_packages_does_not_choose_beside_it(oplet, library, command):
    ran = oplet(command, MODEL, "--custom-op-library", library, "--delegate", "auto")
    assert ran.code == 1
    assert ran.err == (
        "oplet: 'auto' chooses among installed packages; with a library of operators (--custom-op-library), name a delegate, or none.\n"
    )


def test_a_lock_holds_it_and_tells_when_it_is_another(oplet, library, tmp_path):
    lock = tmp_path / "oplet.lock.json"
    ran = oplet("select", MODEL, "--custom-op-library", library, "--lock", lock)
    assert "opener 1.5 (atan.lib)" in ran.out
    [atan] = [op for op in json.loads(lock.read_text())["ops"] if op["name"] == "Atan" and not op.get("fallback")]
    assert (atan["distribution"], atan["library"], atan["library_hash"][:7]) == ("opener", "atan.lib", "sha256:")
    check = ["select", MODEL, "--check", lock]
    assert oplet(*check, "--custom-op-library", library).code == 0
    ran = oplet(*check)
    assert ran.code == 1
    assert "Atan is served by oplet-atan-op 0.1.0 now, and the lock has it from opener (atan.lib)." in ran.out
    ran = oplet(*check, "-p", "no:atan_op")
    assert "Atan is served by nobody now, and the lock has it in the library atan.lib" in ran.out
    other = tmp_path / "other.lib"
    other.write_text("1.0")
    assert "Atan is served by other.lib now, and the lock has it in atan.lib." in oplet(*check, "--custom-op-library", other).out
    library.write_text("2.0")
    ran = oplet(*check, "--custom-op-library", library, "--json")
    [problem] = json.loads(ran.out)["installed"]
    assert (problem["kind"], problem["name"]) == ("library", "Atan")
    assert "The library atan.lib has the hash sha256:" in problem["text"]


def test_code_and_requirements_of_a_selection_say_what_they_can(oplet, library, tmp_path):
    pins = tmp_path / "requirements.txt"
    assert oplet("select", MODEL, "--custom-op-library", library, "--requirements", pins).code == 0
    assert "opener==1.5\n" in pins.read_text()
    ran = oplet("select", MODEL, "--custom-op-library", library, "-o", tmp_path / "ops.py")
    assert ran.code == 1
    assert "Atan is served by the compiled library atan.lib of opener 1.5, which generated code cannot import" in ran.err


@pytest.mark.parametrize("command", ["run", "inspect", "benchmark", "compare", "select", "doctor"])
@pytest.mark.parametrize(
    ("file", "switch", "reason"),
    [
        ("not_there.lib", "no:none", "There is no library not_there.lib."),
        ("model.txt", "no:none", "There is no file 'model.txt'"),
        ("libatan.so", "no:oplet-native-ops", "'libatan.so' cannot be opened: "),
    ],
)
def test_what_cannot_be_opened_is_one_line(oplet, library, command, file, switch, reason):
    ran = oplet(command, MODEL, "--custom-op-library", file, "-p", switch)
    assert ran.code == 1
    errors = [line for line in ran.err.splitlines() if "warning" not in line]
    assert len(errors) == 1
    assert reason in errors[0]
    assert not ran.out
