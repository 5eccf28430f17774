"""Companions: modules of other packages that are reached as modules of oplet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.children import run_child
from tests.places import ROOT

from oplet.companions import GROUP
from oplet_testing.distributions import fake_distribution

SOURCE = {"oplet_wave": '"""Waves."""\ndef play():\n    return "played"\n'}

#: As where the package oplet alone is installed, from an index: no entry point of any group, in either reader.
ALONE = (
    "import oplet.plugins.install_commands; oplet.plugins.install_commands._direct_url = lambda: ''\n"
    "import oplet.plugins.known_packages; oplet.plugins.known_packages.NAMES_ARE_OURS = True\n"
    "import importlib_metadata, oplet.installed; importlib_metadata.entry_points = lambda **wanted: []\n"
    "oplet.installed.entry_points = lambda group: []\n"
)


def run(code: str, site: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path}
    return run_child([sys.executable, "-c", code], code=None, env=environment)


@pytest.mark.parametrize(
    "code",
    [
        "import oplet.wave; assert oplet.wave.play() == 'played'",
        "import oplet; assert oplet.wave.play() == 'played'",
        "from oplet import wave; assert wave.play() == 'played' and wave.__doc__ == 'Waves.' and 'play' in dir(wave)",
        "from oplet.wave import play; import oplet_wave; assert play is oplet_wave.play",
        "import sys, oplet, oplet.errors; assert not {'oplet_wave', 'importlib_metadata'} & {*sys.modules}",
    ],
)
def test_a_companion_is_a_module_of_oplet_s_and_is_imported_when_it_is_used(tmp_path: Path, code: str) -> None:
    fake_distribution(tmp_path, "oplet-wave", "1.0", {"wave": "oplet_wave"}, SOURCE, group=GROUP)
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_companion_cannot_take_the_place_of_a_module_of_oplet_s(tmp_path: Path) -> None:
    fake_distribution(tmp_path, "oplet-wave", "1.0", {"errors": "oplet_wave"}, SOURCE, group=GROUP)
    done = run("import oplet.errors; assert oplet.errors.ModelError", tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_name_that_two_packages_claim_is_refused_and_both_are_named(tmp_path: Path) -> None:
    fake_distribution(tmp_path, "oplet-wave", "1.0", {"wave": "oplet_wave"}, SOURCE, group=GROUP)
    fake_distribution(tmp_path, "oplet-tide", "1.0", {"wave": "oplet_tide"}, group=GROUP)
    assert (
        "ImportError: oplet.wave is claimed by oplet-tide and oplet-wave; uninstall one"
        in run("import oplet.wave", tmp_path).stderr
    )


def test_an_error_inside_a_companion_is_told_as_it_is(tmp_path: Path) -> None:
    fake_distribution(tmp_path, "oplet-wave", "1.0", {"wave": "oplet_wave"}, {"oplet_wave": "import nowhere_at_all"}, group=GROUP)
    for code in ("import oplet.wave", "import oplet; oplet.wave"):
        assert "ModuleNotFoundError: No module named 'nowhere_at_all'" in run(code, tmp_path).stderr


def test_what_is_not_installed_is_told_with_the_package_that_brings_it(tmp_path: Path) -> None:
    assert (
        "ModuleNotFoundError: No module named 'oplet.ray': pip install oplet-ray"
        in run(ALONE + "import oplet.ray", tmp_path).stderr
    )
    told = run(ALONE + "import oplet; print(hasattr(oplet, 'ray'), hasattr(oplet, 'nobody')); oplet.ray", tmp_path)
    assert told.stdout.split() == ["False", "False"]
    assert (
        "AttributeError: module 'oplet' has no attribute 'ray' (No module named 'oplet.ray': pip install oplet-ray" in told.stderr
    )


@pytest.mark.parametrize(
    "code",
    [
        "import oplet.wave.deep.sea; assert oplet.wave.deep.sea.DEPTH == 11",
        "from oplet.wave.deep import sea; import oplet_wave.deep.sea; assert sea.DEPTH is oplet_wave.deep.sea.DEPTH",
        "from oplet.wave.deep.sea import Fish; import oplet_wave.deep.sea; assert Fish is oplet_wave.deep.sea.Fish",
        "import importlib; assert importlib.import_module('oplet.wave.deep').__doc__ == 'Below.'",
    ],
)
def test_a_companion_s_submodules_are_reached_and_their_classes_are_the_same(tmp_path: Path, code: str) -> None:
    deep = {"oplet_wave.deep.__init__": '"""Below."""', "oplet_wave.deep.sea": "DEPTH = 11\nclass Fish: pass\n"}
    sources = {"oplet_wave.__init__": SOURCE["oplet_wave"], **deep}
    fake_distribution(tmp_path, "oplet-wave", "1.0", {"wave": "oplet_wave"}, sources, group=GROUP)
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_submodule_that_does_not_exist_is_told_by_the_name_that_was_asked_for(tmp_path: Path) -> None:
    fake_distribution(tmp_path, "oplet-wave", "1.0", {"wave": "oplet_wave"}, SOURCE, group=GROUP)
    for code in ("import oplet.wave.nothing", "from oplet.wave.nothing import it", "import oplet.wave.nothing.deeper"):
        told = run(code, tmp_path).stderr
        assert "ModuleNotFoundError: No module named 'oplet.wave.nothing'" in told
        assert "pip install" not in told


@pytest.mark.parametrize("name", ["Surfer", "surf", "SWELL"])
def test_a_class_a_function_or_a_constant_is_a_companion_too_and_the_same_one_by_both_names(tmp_path: Path, name: str) -> None:
    sources = {"oplet_wave": "class Surfer: pass\ndef surf(): pass\nSWELL = object()\n"}
    fake_distribution(tmp_path, "oplet-wave", "1.0", {name: f"oplet_wave:{name}"}, sources, group=GROUP)
    same = f"from oplet import {name}; import oplet, oplet_wave; assert {name} is oplet.{name} is oplet_wave.{name}"
    assert run(same, tmp_path).returncode == 0
    told = run(f"import oplet.{name}", tmp_path).stderr
    assert f"ModuleNotFoundError: No module named 'oplet.{name}'" in told


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("from oplet import Predictor", "ImportError: cannot import name 'Predictor' from 'oplet': pip install oplet-predictor brings it."),
        ("import oplet; oplet.Predictor", "ImportError: cannot import name 'Predictor' from 'oplet': pip install oplet-predictor brings it."),
        ("from oplet import IoType", "ImportError: cannot import name 'IoType' from 'oplet': pip install oplet-predictor brings it."),
        ("import oplet; oplet.reconcile_attributes", "AttributeError: module 'oplet' has no attribute 'reconcile_attributes' (No module named 'oplet.reconcile_attributes': pip install oplet-predictor brings it.)"),
        ("from oplet import Interpreter; Interpreter.get_async_signature_runner(None)", "ImportError: cannot import name 'AsyncSignatureRunner' from 'oplet': pip install oplet-predictor brings it."),
        ("import oplet.testing", "ModuleNotFoundError: No module named 'oplet.testing': pip install oplet-testing brings it."),
        ("from oplet import testing", "ModuleNotFoundError: No module named 'oplet.testing': pip install oplet-testing brings it."),
        ("from oplet.testing import Spec", "ModuleNotFoundError: No module named 'oplet.testing': pip install oplet-testing brings it."),
        ("import oplet.testing.one_op", "ModuleNotFoundError: No module named 'oplet.testing': pip install oplet-testing brings it."),
        ("import oplet.tuning", "ModuleNotFoundError: No module named 'oplet.tuning': pip install oplet-tools brings it."),
        ("from oplet.tuning import trials", "ModuleNotFoundError: No module named 'oplet.tuning': pip install oplet-tools brings it."),
        ("import runpy; runpy.run_module('oplet', run_name='__main__')", "oplet: the command is a package of its own; install it: pip install oplet-tools"),
    ],
)  # fmt: skip
def test_where_oplet_alone_is_installed_each_name_says_which_package_brings_it(tmp_path: Path, code: str, said: str) -> None:
    done = run(ALONE + code, tmp_path)
    assert done.returncode == 1
    assert done.stderr.rstrip().splitlines()[-1] == said


def test_where_oplet_alone_is_installed_a_choice_between_engines_says_so_too(tmp_path: Path, examples: Path) -> None:
    model = str(examples / "atan" / "atan.tflite")
    code = f"from oplet import Interpreter\nInterpreter({model!r}, experimental_delegates='auto')"
    last = run(ALONE + code, tmp_path).stderr.rstrip().splitlines()[-1]
    assert last.startswith("oplet.errors.DelegateLoadError: experimental_delegates='auto' asks for a choice between engines")
    assert "pip install oplet-tools" in last


def test_advice_of_a_clone_names_its_folders(tmp_path: Path) -> None:
    clone = (
        "import json, oplet.plugins.install_commands as commands\n"
        f"commands._direct_url = lambda: json.dumps({{'url': {(ROOT / 'core').as_uri()!r}, 'dir_info': {{}}}})\n"
        "commands._installed = lambda package: False\n"
    )
    told = run(ALONE + clone + "import oplet.tuning", tmp_path).stderr.rstrip().splitlines()[-1]
    assert told.endswith(f": pip install {ROOT / 'plugins' / 'predictor'} {ROOT / 'plugins' / 'tools'} brings it.")
