"""Companions: modules of other packages that are reached as modules of oplet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.children import run_child

from oplet.companions import GROUP
from oplet_testing.distributions import fake_distribution

SOURCE = {"oplet_wave": '"""Waves."""\ndef play():\n    return "played"\n'}


def run(code: str, site: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
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
    blocked = "import importlib_metadata; importlib_metadata.entry_points = lambda **wanted: []\n"
    assert (
        "ModuleNotFoundError: No module named 'oplet.ray': pip install oplet-ray"
        in run(blocked + "import oplet.ray", tmp_path).stderr
    )
    told = run(blocked + "import oplet; print(hasattr(oplet, 'ray'), hasattr(oplet, 'nobody')); oplet.ray", tmp_path)
    assert told.stdout.split() == ["False", "False"]
    assert (
        "AttributeError: module 'oplet' has no attribute 'ray' (No module named 'oplet.ray': pip install oplet-ray" in told.stderr
    )
