"""`oplet new-op` and `oplet new-delegate`: packages that pass their own tests at once, and names that are refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from tests.places import ROOT

from oplet_testing.distributions import fake_distribution
from oplet_tools.scaffolding.scaffold import Names, ScaffoldError, new_delegate, new_op


@pytest.mark.parametrize(
    ("command", "names", "said"),
    [
        (["new-op", "Sinh"], Names.of("Sinh", "op"), ["Sinh", 'license = "Apache-2.0"', 'sinh_op = "oplet_sinh_op"']),
        (["new-op", "My.Op", "--license", "MIT"], Names.of("My.Op", "op"), ["My.Op", 'license = "MIT"']),
        (["new-op", "CONV_2D", "--builtin"], Names.of("CONV_2D", "op"), ["built-in operator CONV_2D"]),
        (
            ["new-op", "Sinh", "--package", "Acme.Ops"],
            Names.of("Sinh", "op", "acme-ops"),
            ['name = "acme-ops"', 'acme_ops = "acme_ops"'],
        ),
        (["new-delegate", "fast", "--package", "acme-npu"], Names.of("fast", "delegate", "acme-npu"), ['acme_npu = "acme_npu"']),
        (["new-delegate", "fast"], Names.of("fast", "delegate"), ["delegate fast", 'fast_delegate = "oplet_fast_delegate"']),
    ],
    ids=["custom op", "licence", "built-in op", "package", "delegate's package", "delegate"],
)
def test_a_new_package_passes_its_own_tests(oplet, tmp_path, monkeypatch, command, names, said):
    monkeypatch.chdir(tmp_path)
    ran = oplet(*command)
    assert ran.code == 0, ran.err
    package = tmp_path / names.distribution
    assert {str(p.relative_to(package)) for p in package.rglob("*") if p.is_file()} >= {
        "pyproject.toml",
        "README.md",
        "CONTRIBUTING.md",
        ".gitignore",
        f"src/{names.module}/__init__.py",
        f"src/{names.module}/py.typed",
        f"tests/{names.test}.py",
    }
    for text in said:
        assert text in (package / "pyproject.toml").read_text()
    assert_passes_its_tests(package, names)


def assert_passes_its_tests(package, names):
    site = fake_distribution(package / "src", names.distribution, "0.1.0", {names.plugin: names.module})
    path = [str(site), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    # Of pytest's plugins only the one that the tests use: importing those that happen to be installed takes longer than all else.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "oplet_testing.pytest_plugin"]
    done = subprocess.run(tests, cwd=package, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def test_what_is_written_is_formatted_and_typed(tmp_path):
    """With the settings of this repository, in which `oplet` is one of its own packages."""
    folders = [
        new_op("Sinh", tmp_path / "op"),
        new_op("ADD", tmp_path / "builtin", builtin=True),
        new_delegate("fast", tmp_path / "delegate"),
    ]
    ruff = [sys.executable, "-m", "ruff"]
    for arguments in (
        ["check", "--select", "E,F,W,B,UP,RUF,PT", "--ignore", "E501,B905"],
        ["format", "--check", "--line-length", "130"],
    ):
        done = subprocess.run([*ruff, *arguments, "--isolated", *folders], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    sources = [folder / "src" for folder in folders]
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), *sources]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("Atan", "atan_op"),
        ("My.Op", "my_op"),
        ("Convolution2DTransposeBias", "convolution2d_transpose_bias_op"),
        ("TFLite_Detection_PostProcess", "tf_lite_detection_post_process_op"),
        ("HTTPServer", "http_server_op"),
        ("CONV_2D", "conv_2d_op"),
        ("NS>Op", "ns_op"),
        ("op", "op_op"),
    ],
)
def test_names_for_python_and_pip_follow_from_the_op_s(name, plugin):
    names = Names.of(name, "op")
    assert (names.plugin, names.module, names.distribution) == (plugin, f"oplet_{plugin}", f"oplet-{plugin.replace('_', '-')}")


@pytest.mark.parametrize("name", ["", "a b", "2D", "Größe", 'x"y', "../up", "a/b", "new\nline", "${x}", ".."])
def test_a_name_that_is_none_is_refused(tmp_path, name):
    with pytest.raises(ScaffoldError, match="cannot be an op's name"):
        new_op(name, tmp_path / "package")
    with pytest.raises(ScaffoldError, match="cannot be a delegate's name"):
        new_delegate(name, tmp_path / "package")
    assert not (tmp_path / "package").exists()


def test_a_built_in_operator_needs_the_switch_and_the_switch_a_built_in_operator(tmp_path):
    with pytest.raises(ScaffoldError, match="RELU is a built-in operator; --builtin"):
        new_op("RELU", tmp_path / "package")
    for meant, name in (("SOFTMAX", "softmax"), ("CONV_2D", "Conv2d"), ("FULLY_CONNECTED", "FULLY_CONECTED")):
        with pytest.raises(ScaffoldError, match=f"called '{name}'; did you mean {meant}\\?"):
            new_op(name, tmp_path / "x", builtin=True)
    with pytest.raises(ScaffoldError, match="no built-in operator called 'Atan'"):
        new_op("Atan", tmp_path / "package", builtin=True)


def test_nothing_is_overwritten(oplet, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    ran = oplet("new-op", "Sinh", "--directory", tmp_path)
    assert (ran.code, ran.err) == (
        1,
        f"oplet: '{tmp_path}' is there already; name another folder with --directory, or remove it.\n",
    )
    assert os.listdir(tmp_path) == ["mine.txt"]


def test_a_licence_that_would_break_the_file_is_refused(tmp_path):
    with pytest.raises(ScaffoldError, match="not a licence"):
        new_op("Sinh", tmp_path / "package", license='MIT"\nname = "x')


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and permissions")
@pytest.mark.parametrize("command", [("new-op", "Atan"), ("new-delegate", "Atan")])
def test_an_empty_folder_of_somebody_else_s_is_not_written_into_unless_it_is_named(oplet, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    planted = tmp_path / Names.of("Atan", command[0].removeprefix("new-")).distribution
    planted.mkdir()
    planted.chmod(0o777)
    ran = oplet(*command)
    assert ran.code == 1
    assert "that somebody else may write into; name another with --directory" in ran.err
    (tmp_path / "elsewhere").mkdir()
    planted.rmdir()
    planted.symlink_to("elsewhere")
    assert oplet(*command).code == 1
    assert os.listdir(tmp_path / "elsewhere") == []
    assert oplet(*command, "--directory", planted).code == 0


@pytest.mark.parametrize("package", ["", "a b", "2d", "acme-", "a--b", "ä", "../up", "oplet", "json", "class", "a" * 60 + "!"])
def test_a_name_of_a_package_that_pip_or_python_would_not_take_or_that_is_taken_is_refused(tmp_path, package):
    for write, name in ((new_op, "Sinh"), (new_delegate, "fast")):
        with pytest.raises(ScaffoldError, match="cannot be a package's name"):
            write(name, tmp_path / "package", package=package)
    assert not (tmp_path / "package").exists()


def test_the_text_of_the_default_licence_comes_with_the_package_and_another_one_s_is_the_author_s_to_bring(tmp_path):
    text = (ROOT / "LICENSE").read_text()
    assert (new_op("Sinh", tmp_path / "apache") / "LICENSE").read_text() == text
    other = new_op("Sinh", tmp_path / "mit", license="MIT")
    assert not (other / "LICENSE").exists()
    assert "(MIT)" in (other / "CONTRIBUTING.md").read_text()


def test_what_an_index_shows_of_a_new_package_says_nothing_of_a_draft(tmp_path):
    for folder in (new_op("Sinh", tmp_path / "op"), new_op("ADD", tmp_path / "builtin", builtin=True)):
        page = (folder / "README.md").read_text()
        assert "draft" not in page
        assert "generated" not in page
        assert "twine check --strict" in (folder / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize(("name", "builtin"), [("Sinh", False), ("ADD", True)])
def test_the_generated_tests_stand_a_kernel_that_looks_at_finished_no_more(tmp_path, name, builtin):
    """As those write it who follow the tutorial and keep their tests."""
    folder = new_op(name, tmp_path, builtin=builtin)
    names = Names.of(name, "op")
    for file, old, new in (
        ("__init__.py", "FINISHED = False", "FINISHED = True"),
        ("kernel.py", r"    if not FINISHED:\n.*\n", ""),
        ("kernel.py", r"from \w+ import FINISHED\n", ""),
    ):
        path = folder / "src" / names.module / file
        text, count = re.subn(old, new, path.read_text())
        assert count == 1
        path.write_text(text)
    assert_passes_its_tests(folder, names)
