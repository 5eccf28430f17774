"""What `oplet build` says of its result: what it needs where it runs, and a fair comparison of times."""

from __future__ import annotations

import json
import os
from importlib.metadata import distribution
from pathlib import Path

import pytest
from tests.places import EXAMPLES

from oplet import PluginManager
from oplet_build.building import report as reporting
from oplet_build.building.build_program import BuiltProgram, build_program
from oplet_build.building.report import make_report
from oplet_tools.processes import run_python

DIGITS = EXAMPLES / "digits"
SEVEN = DIGITS / "pictures" / "7.png"


def only(folder: Path, *packages: str) -> Path:
    """A folder from which these packages can be imported, as they are installed here, and nothing else."""
    folder.mkdir()
    for name in packages:
        found = distribution(name)
        tops = {Path(file).parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            os.symlink(str(found.locate_file(top)), folder / top)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltProgram:
    target = tmp_path_factory.mktemp("program") / "digits.pyz"
    plugins = PluginManager(load=["oplet-builtin-ops"])
    return build_program([DIGITS / "digits_int8.tflite"], "digits_app", target, with_models=True, plugins=plugins)


def test_a_program_with_numpy_alone_says_what_a_picture_takes_and_runs_once_that_is_there(
    built: BuiltProgram, tmp_path: Path
) -> None:
    command = [str(built.path), "--input", str(SEVEN), "--labels", str(DIGITS / "labels.txt"), "--top", "1"]
    options = {"bare": True, "capture_output": True, "text": True}
    alone = only(tmp_path / "alone", "numpy")
    random = run_python([str(built.path)], folders=[alone], **options)
    assert random.returncode == 0, random.stderr
    refused = run_python(command, folders=[alone], **options)
    assert refused.returncode == 1
    assert refused.stderr == f"digits-app: '{SEVEN}' cannot be read: pictures as inputs need Pillow: pip install pillow.\n"
    answered = run_python(command, folders=[only(tmp_path / "both", "numpy", "pillow")], **options)
    assert answered.returncode == 0, answered.stderr
    assert "seven" in answered.stdout


def test_the_report_says_all_that_a_program_needs(built: BuiltProgram, tmp_path: Path) -> None:
    report = make_report(built, PluginManager(load=["oplet-builtin-ops"]), timing=False)
    numpy = dict(built.payload.requires)["numpy"]
    assert report.needs == f"needs {numpy}, nothing else; pictures as inputs need Pillow: pip install pillow"
    assert report.as_dict()["needs"] == report.needs
    wheel = build_program(
        [DIGITS / "digits_int8.tflite"], "digits_app", tmp_path, plugins=PluginManager(load=["oplet-builtin-ops"])
    )
    assert make_report(wheel, PluginManager(load=["oplet-builtin-ops"]), timing=False).needs == f"needs {numpy}, nothing else"


@pytest.mark.parametrize("variable", ["PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"])
def test_times_are_taken_from_compiled_modules_whatever_the_environment_says(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "_ROUNDS", 2)
    for side in ("installed", "built"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "imported_for_the_report.py").write_text("")
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    code = """
import importlib.util, os, sys
sys.path.insert(0, sys.argv[1])
spec = importlib.util.find_spec("imported_for_the_report")
there = os.path.exists(spec.cached)
import imported_for_the_report
print(float(there))
"""
    sides = {side: ["-c", code, str(tmp_path / side)] for side in ("installed", "built")}
    assert reporting._interleaved(
        sides, reporting._environment([], str(tmp_path / "cache")), lambda part: None, reported=True
    ) == {
        "installed": 1.0,
        "built": 1.0,
    }
    assert not list((tmp_path / "built").rglob("*.pyc")), "nothing is written beside what was built"


def test_both_sides_do_the_same_without_the_plugins_that_the_build_was_not_cut_out_of(
    built: BuiltProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "_ROUNDS", 1)
    monkeypatch.setenv("OPLET_PREFER", "oplet-somebody-elses-ops")
    infos = [i for i in PluginManager().plugins() if i.distribution == "oplet-builtin-ops"]
    code = "from oplet import PluginManager\nprint(sum(i.state == 'loaded' for i in PluginManager().plugins()))"
    assert reporting._interleaved(
        {"installed": ["-c", code]}, reporting._environment(infos, str(tmp_path)), lambda part: None, reported=True
    ) == {"installed": 1.0}
    plugins = PluginManager(load=["oplet-builtin-ops"])
    report = make_report(built, plugins, model=str(DIGITS / "digits_int8.tflite"))
    assert report.notes == []
    assert report.import_seconds is not None
    assert report.answer_seconds is not None
    for words in ("oplet with oplet-builtin-ops alone", "fresh processes", "turns", "compiled modules", "numpy"):
        assert words in report.compared


@pytest.mark.sweep
def test_the_command_prints_what_is_compared_and_needed(oplet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "_ROUNDS", 1)
    command = [
        "build",
        DIGITS / "digits_int8.tflite",
        "--name",
        "digits_app",
        "-o",
        tmp_path / "digits.pyz",
        "-p",
        "no:compiled_ops",
    ]
    ran = oplet(*command)
    assert ran.code == 0, ran.err
    printed = " ".join(ran.out.split())
    assert "pip install pillow" in printed
    assert "Medians of 1 fresh processes" in printed
    told = json.loads(oplet(*command, "--json").out)["report"]
    assert {"compared", "needs", "import_seconds", "answer_seconds"} <= set(told)
