"""The packages of this repository belong together: one version, stated once, and kept by what is built of each alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections import Counter
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from scripts import packages, stubs
from scripts.requirements import ROOT, tomllib
from tests.children import run_child

import oplet

FOLDERS = packages.folders()


def tables(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))


each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@each
def test_no_package_states_a_version_of_its_own(folder: Path) -> None:
    found = tables(folder)
    assert "version" not in found["project"]
    source = (folder / found["tool"]["hatch"]["version"]["path"]).resolve()
    assert source == ROOT / "core/src/oplet/__init__.py"
    assert len(re.findall(r"^__version__ = ", source.read_text("utf-8"), re.MULTILINE)) == 1
    others = [path for path in folder.rglob("src/**/*.py") if path != source and "\n__version__ =" in path.read_text("utf-8")]
    assert others == []


@pytest.mark.environment
@each
def test_what_is_built_of_a_package_alone_has_the_one_version(folder: Path, tmp_path: Path) -> None:
    # A clone with another version; then a source distribution of it, and what is built of that where the clone is gone.
    clone = tmp_path / "clone"
    for part in {ROOT / "core", folder}:
        ignored = shutil.ignore_patterns("__pycache__", "tests")
        shutil.copytree(part, clone / part.relative_to(ROOT), ignore=ignored)
    source = clone / "core/src/oplet/__init__.py"
    source.write_text(source.read_text("utf-8").replace(f'"{oplet.__version__}"', '"9.8.7"'), encoding="utf-8")
    dist, moved = tmp_path / "dist", tmp_path / "moved"
    sdist, *_ = packages.build(clone / folder.relative_to(ROOT), dist)
    shutil.rmtree(clone)
    with tarfile.open(sdist) as archive:
        archive.extractall(moved)
    [alone] = moved.iterdir()
    [wheel] = (file for file in packages.build(alone, tmp_path / "again") if file.suffix == ".whl")
    name = tables(folder)["project"]["name"].replace("-", "_")
    assert sdist.name == f"{name}-9.8.7.tar.gz"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    has_code = sys.platform == "linux" and packages.targets(folder)
    assert wheel.name == f"{name}-9.8.7-py3-none-{platform if has_code else 'any'}.whl"
    with zipfile.ZipFile(wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"{name}-9.8.7.dist-info/METADATA").decode())
    assert metadata["Version"] == "9.8.7"


@pytest.mark.parametrize("folder", FOLDERS[1:-1], ids=lambda folder: folder.name)
def test_a_plugin_states_the_range_of_oplet_that_it_is_written_for(folder: Path) -> None:
    # Before 1.0 a minor version may change what plugins use; the packages of one release are written for one another.
    ours = [r for r in map(Requirement, tables(folder)["project"]["dependencies"]) if r.name.startswith("oplet")]
    assert "oplet-core" in {requirement.name for requirement in ours}
    are_of_this_version(ours)


def test_what_is_installed_by_the_project_s_name_is_the_core_and_the_operators_of_its_very_version() -> None:
    # Then `pip install --upgrade oplet` moves all of them, which pip leaves alone within a range.
    project = tables(FOLDERS[-1])["project"]
    assert project["name"] == "oplet"
    everything = [*project["dependencies"], *(text for texts in project["optional-dependencies"].values() for text in texts)]
    assert {str(Requirement(text).specifier) for text in everything} == {f"=={oplet.__version__}"}
    assert [Requirement(text).name for text in project["dependencies"]] == ["oplet-builtin-ops", "oplet-core"]


def test_the_extras_ask_for_packages_of_the_project() -> None:
    extras = tables(FOLDERS[-1])["project"]["optional-dependencies"]
    names = {extra: [Requirement(text).name for text in texts] for extra, texts in extras.items()}
    everything = names.pop("all")
    assert names == {
        "build": ["oplet-build"],
        "cli": ["oplet-tools"],
        "fast": ["oplet-builtin-ops", "oplet-compiled-ops"],
        "ops": ["oplet-builtin-ops"],
    }
    assert {name for listed in names.values() for name in listed} < set(everything)


def test_the_core_alone_requires_nothing_of_tools() -> None:
    required = [Requirement(text).name for text in tables(FOLDERS[0])["project"]["dependencies"]]
    assert required == ["flatbuffers", "importlib-metadata", "ml_dtypes", "numpy", "pluggy"]
    assert "scripts" not in tables(FOLDERS[0])["project"]


#: What packages without heavy requirements require, besides packages of this repository.
LIGHT = {
    "flatbuffers",
    "google-re2",
    "hatchling",
    "importlib-metadata",
    "ml-dtypes",
    "numpy",
    "pillow",
    "pluggy",
    "rich",
    "typer",
}
#: Packages without heavy requirements that "all" leaves out: one is there to be copied, the others answer for other packages.
LEFT_OUT = {"oplet-example-delegate", "oplet-litert-shim", "oplet-model-explorer"}


def test_the_extra_all_has_every_package_without_heavy_requirements() -> None:
    projects = {tables(folder)["project"]["name"]: tables(folder)["project"] for folder in FOLDERS}
    required = {
        name: {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
        for name, project in projects.items()
    }
    heavy = {name for name, others in required.items() if others - LIGHT - projects.keys()}
    while more := {name for name, others in required.items() if others & heavy} - heavy:
        heavy |= more
    everything = {Requirement(text).name for text in projects["oplet"]["optional-dependencies"]["all"]}
    assert everything == projects.keys() - heavy - LEFT_OUT - {"oplet", "oplet-core"}


def are_of_this_version(ours: list[Requirement]) -> None:
    version = Version(oplet.__version__)
    for requirement in ours:
        assert requirement.specifier.contains(version)
        assert not requirement.specifier.contains(Version(f"{version.major}.{version.minor + 1}"))
        assert not requirement.specifier.contains(Version(f"{version.major}.{version.minor}.dev0"))


@pytest.mark.parametrize("source", stubs.PACKAGES, ids=lambda source: f"{source.parent.name}.{source.stem}")
def test_type_checkers_see_the_public_names_and_each_is_stated_once(source: Path) -> None:
    assert source.with_suffix(".pyi").read_text("utf-8") == stubs.stub(source), "run python -m scripts.stubs"
    text = source.read_text("utf-8")
    for name in stubs.homes(source):
        assert len(re.findall(rf"(?<![\w.`]){name}(?![\w`])", re.sub(r'"""(.|\n)*?"""', "", text))) == 1, name
    names: dict[str, Any] = {}
    module = f"{source.parent.name}.{source.stem}".removesuffix(".__init__")
    exec(f"from {module} import *", names)
    assert stubs.homes(source).keys() <= names.keys()


def test_importing_oplet_imports_nothing_else_of_it_but_where_companions_are_looked_for() -> None:
    program = "import sys, oplet, oplet_testing; print(*sorted(m for m in sys.modules if m.split('.')[0] in ('oplet', 'oplet_testing', 'numpy')))"
    done = run_child([sys.executable, "-c", program])
    assert done.stdout.split() == [
        "oplet",
        "oplet.companions",
        "oplet_testing",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--version"], 0, f"oplet {oplet.__version__}"),
        (["--help"], 0, "Usage: python -m oplet [OPTIONS] COMMAND"),
        (["-p", "no:atan_op", "plugins"], 0, "oplet-builtin-ops"),
        (["run"], 2, "Try 'python -m oplet run -h' for help."),
        (["run", "absent.tflite"], 1, "oplet: Could not open 'absent.tflite'"),
    ],
)
def test_the_command_runs_as_a_module(arguments: list[str], code: int, words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "oplet", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr


def test_messages_of_the_command_tell_how_it_was_called(capsys: pytest.CaptureFixture[str]) -> None:
    from oplet_tools.cli.main import main

    with pytest.raises(SystemExit):
        main(["--help"])
    assert "Usage: oplet [OPTIONS] COMMAND" in capsys.readouterr().out


def test_running_a_model_imports_of_packages_that_serve_none_of_it_no_more_than_their_hooks() -> None:
    program = """if True:
        import sys
        import numpy
        from oplet import Interpreter
        before = {name.partition(".")[0] for name in sys.modules}
        runner = Interpreter(sys.argv[1])
        runner.allocate_tensors()
        runner.invoke()
        print(*(name for name in sys.modules if name.partition(".")[0] not in before | sys.stdlib_module_names))
        """
    model = ROOT / "examples" / "digits" / "digits_float32.tflite"
    # With a plan from disk, which another test may have stored, not even hooks are imported.
    environment = {**os.environ, "OPLET_PLANS": "off"}
    names = run_child([sys.executable, "-W", "ignore", "-c", program, str(model)], env=environment).stdout.split()
    assert "oplet_atan_op" in names
    others = [name for name in names if not name.startswith(("oplet_builtin_ops", "oplet_compiled_ops"))]
    assert [name for name in others if not name.startswith("oplet_")] == []
    by_package = Counter(name.partition(".")[0] for name in others)
    assert {package: number for package, number in by_package.items() if number > 2} == {}
