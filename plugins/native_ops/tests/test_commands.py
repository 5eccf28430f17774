"""`oplet native`, and compiled libraries behind `--custom-op-library`."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest
from scripts.requirements import tomllib
from tests.children import run_child

from oplet_native_ops.commands.scaffold import new_op

EXAMPLES = Path(__file__).parents[3] / "examples"
MODEL = EXAMPLES / "atan" / "atan.tflite"


def oplet(*arguments: object, cwd: Path | None = None, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with the packages in `path` besides those that are installed."""
    paths = [str(path)] if path else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])}
    command = [sys.executable, "-m", "oplet", *map(str, arguments)]
    return run_child(command, code=None, cwd=cwd, env=environment)


def test_a_model_runs_with_a_library_and_the_commands_name_it(build_once: Any) -> None:
    library = build_once("atan_operator.cc")
    name = Path(library).name
    ran = oplet("run", MODEL, "--custom-op-library", library, "-p", "no:atan_op", "--json")
    assert not ran.returncode, ran.stderr
    version = json.loads(oplet("plugins", "--json").stdout)
    [own] = [info["version"] for info in version if info["name"] == "native_ops"]
    assert json.loads(ran.stdout)["nodes"][f"oplet-native-ops {own} ({name})"] == 1
    [atan] = [op for op in json.loads(oplet("doctor", MODEL, "--custom-op-library", library, "--json").stdout) if op["custom"]]
    assert atan["provider"] == f"oplet-native-ops {own} ({name})"
    compared = oplet("compare", MODEL, "--custom-op-library", f"{library}:AtanOpRegistration=Atan", "--json")
    assert not compared.returncode, compared.stderr


def test_the_operators_of_several_libraries_go_together(build_once: Any) -> None:
    struct = f"{build_once('atan_struct.cc')}:tflite::ops::custom::Register_ATAN"
    ran = oplet("doctor", MODEL, "--custom-op-library", struct)
    assert ran.returncode == 1
    assert "does not say its name" in ran.stderr
    both = ["--custom-op-library", f"{struct}=Other", "--custom-op-library", build_once("atan_operator.cc")]
    ran = oplet("doctor", MODEL, *both)
    assert not ran.returncode, ran.stderr
    ran = oplet("doctor", MODEL, "--custom-op-library", f"{struct}=Atan", *both)
    assert ran.returncode == 1
    assert ran.stderr.startswith("oplet: Atan is in ")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("missing.so", None, "There is no library"),
        ("text.so", b"hello", "text.so cannot be loaded: it is no ELF file"),
        ("text.txt", b"hello", "text.txt' is of no kind that an installed plugin opens"),
    ],
)
def test_a_file_that_is_no_library_is_one_line(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ran = oplet("run", MODEL, "--custom-op-library", tmp_path / name)
    assert ran.returncode == 1
    assert reason in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_library_needs_no_suffix_to_be_told(build_once: Any, tmp_path: Path) -> None:
    shutil.copy(build_once("atan_operator.cc"), tmp_path / "atan")
    ran = oplet("run", MODEL, "--custom-op-library", tmp_path / "atan", "-p", "no:atan_op")
    assert not ran.returncode, ran.stderr


def test_the_flags_compile_a_library(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no compiler here")
    flags = oplet("native", "cflags").stdout
    assert json.loads(oplet("native", "cflags", "--json").stdout) == flags.split()
    source = Path(__file__).parent / "sources" / "atan_operator.cc"
    library = tmp_path / "libatan.so"
    run_child(f"{compiler} -std=c++17 {flags.strip()} -o {library} {source}", shell=True)
    assert not oplet("run", MODEL, "--custom-op-library", library, "-p", "no:atan_op").returncode


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A new package, and the folder that pip installed it into."""
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("there is no compiler here")
    folder = tmp_path_factory.mktemp("new")
    ran = oplet("native", "new-op", "MyTwice", cwd=folder)
    assert not ran.returncode, ran.stderr
    draft, finished, _, last = ran.stdout.splitlines()[-4:]
    assert draft.startswith("It is a draft that runs no model.")
    assert finished == "FINISHED = True in oplet-my-twice-op/src/oplet_my_twice_op/__init__.py."
    assert last == 'cd oplet-my-twice-op && pip install -e ".[test]" && pytest'
    made, site = folder / "oplet-my-twice-op", folder / "site"
    # What pip would install first is here.
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(site), "."]
    done = subprocess.run(pip, cwd=made, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return made, site


@pytest.mark.environment
def test_a_new_package_is_compiled_by_pip_and_passes_its_own_tests(package: tuple[Path, Path]) -> None:
    made, site = package
    [info] = site.glob("*.dist-info")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert f"Tag: py3-none-{platform}" in (info / "WHEEL").read_text()
    assert (site / "oplet_my_twice_op" / "libmy_twice.so").is_file()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(tests, cwd=made, env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stdout[-3000:]


@pytest.mark.environment
def test_a_finished_package_is_named_with_its_library_and_a_build_carries_it(package: tuple[Path, Path], tmp_path: Path) -> None:
    from oplet_testing import Spec, one_op_model

    model = tmp_path / "twice.tflite"
    model.write_bytes(one_op_model("MyTwice", [Spec("float32", [3])], [Spec("float32", [3])]))
    site = shutil.copytree(package[1], tmp_path / "site")
    assert oplet("doctor", model, path=site).returncode == 1  # as long as it is not finished
    module = site / "oplet_my_twice_op" / "__init__.py"
    module.write_text(module.read_text().replace("FINISHED = False", "FINISHED = True"))
    told = oplet("doctor", model, "--json", path=site)
    assert [op["provider"] for op in json.loads(told.stdout)] == ["oplet-my-twice-op 0.1.0 (libmy_twice.so)"], told.stderr
    built = oplet("build", model, "--name", "twice_ops", "-o", tmp_path / "dist", "--no-timing", "--json", path=site)
    assert not built.returncode, built.stderr
    assert "oplet-native-ops>=0.1" in json.loads(built.stdout)["requires"]
    with zipfile.ZipFile(json.loads(built.stdout)["wheel"]) as wheel:
        wheel.extractall(tmp_path / "unpacked")
    answer = json.loads(oplet("run", model, "--json", path=tmp_path / "unpacked").stdout)
    assert answer["nodes"] == {"twice-ops 1.0 (libmy_twice.so)": 1}
    [x], [y] = answer["inputs"], answer["outputs"]
    assert len(y["values"]) == 3
    assert all(value for value in y["values"])
    assert x["source"] == "random"
    program = oplet("build", model, "--name", "twice_ops", "-o", tmp_path / "twice.pyz", "--no-timing", path=site)
    assert program.returncode == 1
    assert "runs in the compiled library libmy_twice.so, which a program cannot carry" in program.stderr


def test_a_new_package_s_files_are_told_as_json_too(tmp_path: Path) -> None:
    ran = oplet("native", "new-op", "My.Op>Two", "--json", "-d", "there", "--license", "MIT", cwd=tmp_path)
    assert not ran.returncode, ran.stderr
    told = json.loads(ran.stdout)
    assert told["folder"] == "there"
    assert "there/native/my_op_two.cc" in told["files"]
    assert 'license = "MIT"' in (tmp_path / "there" / "pyproject.toml").read_text()
    assert (tmp_path / "there" / "native" / "include" / "tflite" / "c" / "c_api_opaque.h").is_file()


def test_a_new_package_has_a_name_of_the_author_s_own_its_licence_s_text_and_the_way_to_a_release(tmp_path: Path) -> None:
    folder = new_op("SoftThreshold", tmp_path / "own", package="Acme.Native-ops")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == "acme-native-ops"
    assert project["entry-points"]["oplet"] == {"acme_native_ops": "acme_native_ops"}
    assert (folder / "src" / "acme_native_ops" / "__init__.py").is_file()
    assert 'plugin.distribution == "acme-native-ops"' in (folder / "tests" / "test_soft_threshold.py").read_text()
    assert "draft" not in (folder / "README.md").read_text()  # an index shows it
    release = (folder / "CONTRIBUTING.md").read_text()
    hook = runpy.run_path(str(folder / "hatch_build.py"))
    assert set(re.findall(r"NATIVE_TARGET=(\S+) python -m build", release)) == set(hook["TARGETS"])
    assert "src/acme_native_ops/libsoft_threshold.so" in release
    shared = EXAMPLES.parent / "plugins/tools/src/oplet_tools/scaffolding/templates/apache/LICENSE.in"
    assert (folder / "LICENSE").read_text() == shared.read_text()
    assert not (new_op("SoftThreshold", tmp_path / "other", license="MIT") / "LICENSE").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["Atan", "--package", "json"], "'json' cannot be a package's name"),
        (["Atan", "--package", "a/b"], "'a/b' cannot be a package's name"),
        (["2D"], "'2D' cannot be an op's name here"),
        (["a b"], "'a b' cannot be an op's name here"),
        (["CONV_2D"], "CONV_2D is a built-in operator"),
        (["Atan", "--license", "a/b"], "'a/b' is not a licence"),
        (["Atan", "-d", "taken"], "'taken' is there already"),
    ],
)
def test_a_package_that_cannot_be_written_is_one_line(tmp_path: Path, arguments: list[str], reason: str) -> None:
    (tmp_path / "taken").write_text("")
    ran = oplet("native", "new-op", *arguments, cwd=tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"oplet: {reason}")
    assert ran.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_package_that_does_not_compile_says_why(tmp_path: Path) -> None:
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("there is no compiler here")
    folder = new_op("Atan", tmp_path / "package")
    (folder / "native" / "atan.cc").write_text("nonsense\n")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(tmp_path / "site"),
        ".",
    ]
    done = subprocess.run(pip, cwd=folder, capture_output=True, text=True)
    assert done.returncode
    assert "libatan.so cannot be compiled with" in done.stderr
    assert "atan.cc" in done.stderr


def test_what_is_written_is_formatted(tmp_path: Path) -> None:
    folder = new_op("Sinh", tmp_path / "op")
    for arguments in (
        ["check", "--isolated", "--select", "E,F,W,B,UP,RUF,PT,I", "--ignore", "E501,B905", "--target-version", "py310"],
        ["format", "--isolated", "--check", "--line-length", "130"],
    ):
        done = subprocess.run([sys.executable, "-m", "ruff", *arguments, "."], cwd=folder, capture_output=True, text=True)
        assert not done.returncode, done.stdout + done.stderr
