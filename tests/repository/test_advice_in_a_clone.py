"""What messages advise to install works from a clone: each command that is printed is run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from tests.children import run_child
from tests.places import ROOT, name_of

from oplet import PluginManager
from oplet.plugins import install_commands, known_packages
from oplet_testing.distributions import fake_distribution, installed

FOLDERS = [ROOT / "core", *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml")), ROOT / "metapackage"]
PACKAGES = [name_of(folder) for folder in FOLDERS]
#: Of oplet itself: which of them a newer one is installed by depends on what is installed.
NAMES = {"oplet", "oplet-core"}


def of(folder: Path, **told: object) -> Callable[[], str]:
    """What pip notes of an installation from a folder."""
    return lambda: json.dumps({"url": (folder / "core").as_uri(), "dir_info": {}, **told})


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch) -> Path:
    """An oplet that was installed from this clone."""
    monkeypatch.setattr(install_commands, "_direct_url", of(ROOT, dir_info={"editable": True}))
    return ROOT


def targets(command: str) -> list[str]:
    """What a command has pip install; a shell reads it."""
    found = re.search(r"pip install (.+)", command)
    assert found, command
    return [word for word in shlex.split(found[1]) if word != "--upgrade"]


def is_project(target: str) -> str:
    """The project's name where pip would take this for a folder, "" where it would ask an index."""
    path, _, extra = target.partition("[")
    if "/" not in path:
        return ""
    text = Path(path, "pyproject.toml").read_text()
    if extra:
        assert f"\n{extra.rstrip(']')} = [" in text[text.index("[project.optional-dependencies]") :]
    name = re.search(r'^name = "(.+)"$', text, re.MULTILINE)
    assert name
    return name[1]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_of_the_repository_is_advised_by_its_folder(clone: Path, package: str) -> None:
    for upgrade in (False, True):
        assert [is_project(target) for target in targets(install_commands.install_command(package, upgrade=upgrade))] == [package]
    assert "up to date" in install_commands.install_command(package, upgrade=True)


def test_what_the_package_requires_of_the_project_is_advised_with_it(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install_commands, "_installed", lambda package: False)
    for package, extra, needed in (
        ("oplet-compiled-ops", "", ["oplet-builtin-ops", "oplet-compiled-ops"]),
        ("oplet-tools", "", ["oplet-predictor", "oplet-tools"]),
        ("oplet-tools", "graph", ["oplet-predictor", "oplet-tools"]),
        ("oplet-build", "", ["oplet-predictor", "oplet-tools", "oplet-build"]),
        ("oplet-serve", "", ["oplet-predictor", "oplet-tools", "oplet-serve"]),
        ("oplet", "cli", ["oplet-builtin-ops", "oplet-predictor", "oplet-tools", "oplet"]),
        ("oplet", "build", ["oplet-builtin-ops", "oplet-predictor", "oplet-tools", "oplet-build", "oplet"]),
        ("oplet", "fast", ["oplet-builtin-ops", "oplet-compiled-ops", "oplet"]),
        ("oplet", "ops", ["oplet-builtin-ops", "oplet"]),
        ("oplet", "", ["oplet-builtin-ops", "oplet"]),
        ("oplet-core", "", ["oplet-core"]),
    ):
        found = [is_project(target) for target in targets(install_commands.install_command(package, extra))]
        assert found == needed


def test_what_is_installed_already_is_not_advised_again(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install_commands, "_installed", lambda package: package == "oplet-tools")
    found = [is_project(target) for target in targets(install_commands.install_command("oplet-build"))]
    assert found == ["oplet-predictor", "oplet-build"]


def test_only_an_oplet_of_a_clone_that_is_still_there_is_advised_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [
        lambda: "",
        lambda: "[]",
        lambda: "no json",
        lambda: json.dumps({"url": "https://example.com/oplet.whl", "archive_info": {}}),
        lambda: json.dumps({"url": "https://example.com/core", "dir_info": {}}),
        lambda: json.dumps({"url": (tmp_path / "core").as_uri(), "dir_info": {}}),  # gone since
        lambda: json.dumps({"url": (ROOT / "plugins" / "atan_op").as_uri(), "dir_info": {}}),
        lambda: json.dumps({"url": (ROOT / "core").as_uri(), "vcs_info": {}}),
    ]
    for note in notes:
        monkeypatch.setattr(install_commands, "_direct_url", note)
        assert install_commands.clone() is None
        assert install_commands.install_command("oplet-atan-op") == "pip install oplet-atan-op"
        assert install_commands.install_command("oplet-tools", "graph") == 'pip install "oplet-tools[graph]"'


@pytest.mark.parametrize("name", ["plain", "with a space", "quote's", 'double"', "dollar$HOME", "brackets[x]", "ümlaut"])
def test_a_folder_of_any_name_is_one_word_for_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    root = tmp_path / name
    for folder in ("core", "metapackage", "plugins/atan_op"):
        (root / folder).mkdir(parents=True)
        shutil.copy(ROOT / folder / "pyproject.toml", root / folder)
    monkeypatch.setattr(install_commands, "_direct_url", of(root))
    for package, extra, target in (("oplet-atan-op", "", "plugins/atan_op"), ("oplet", "new", "metapackage[new]")):
        command = install_commands.install_command(package, extra)
        echoed = run_child(["sh", "-c", command.replace("pip install", "printf %s")])
        assert echoed.stdout == str(root / target)


def test_a_version_that_the_clone_does_not_have_is_asked_of_an_index(clone: Path) -> None:
    version = metadata.version("oplet-atan-op")
    assert is_project(targets(install_commands.install_command("oplet-atan-op", version=version))[0]) == "oplet-atan-op"
    assert install_commands.install_command("oplet-atan-op", version="99.9") == "pip install oplet-atan-op==99.9"


def test_a_package_of_others_is_advised_by_its_name(clone: Path) -> None:
    for name in ("oplet-somebody", "my-ops", "oplet-../core", "oplet-"):
        assert targets(install_commands.install_command(name)) == [name]


def test_a_new_delegate_is_told_with_the_package_that_its_tests_need(clone: Path, oplet, tmp_path: Path, monkeypatch) -> None:
    printed = "".join(oplet("new-delegate", "first", "--directory", tmp_path / "first").out.split())
    assert f'cd{tmp_path}/first&&pipinstall-e".[test]"&&pytest' in printed
    assert "pipinstall/" not in printed, "what it needs is installed here"
    monkeypatch.setattr(install_commands, "_installed", lambda package: False)
    printed = "".join(oplet("new-delegate", "second", "--directory", tmp_path / "second").out.split())
    assert f"pipinstall{clone}/plugins/testing{clone}/plugins/builtin_ops&&cd{tmp_path}/second" in printed
    printed = "".join(oplet("new-op", "Third", "--directory", tmp_path / "third").out.split())
    assert f"pipinstall{clone}/plugins/testing&&cd{tmp_path}/third" in printed, "its tests do without operators"


# Every place that prints a command ----------------------------------------------------------------------------------------


def advised(tmp_path: Path) -> Iterator[str]:
    """Sentences of core that advise an installation."""
    site = tmp_path / "site"
    with installed(site) as entry_points:
        for op in ("Atan", "CONV_2D", "MaxUnpooling2D", "SignalRfft"):
            yield PluginManager(entry_points=entry_points).advice(op)
    fake_distribution(site, "oplet-builtin-ops", "0.0", {"builtin_ops": "too_new"}, {"too_new": 'OPLET_API = "9"'})
    fake_distribution(site, "oplet-atan-op", "0.0", {"atan_op": "broken_one"}, {"broken_one": "1 / 0"})
    fake_distribution(site, "oplet-signal-ops", "0.0", {"signal_ops": "empty_one"}, {"empty_one": ""})
    with installed(site) as entry_points:
        manager = PluginManager(entry_points=entry_points)
        yield from (manager.advice(op) for op in ("Atan", "CONV_2D", "SignalRfft"))


def test_every_advice_of_an_op_names_what_pip_finds_in_the_clone(clone: Path, tmp_path: Path) -> None:
    sentences = list(advised(tmp_path))
    assert len(sentences) == 7
    for sentence in sentences:
        commands = re.findall(r"pip install (?:--upgrade )?(\S+?)[.;]?(?= |$)", sentence)
        assert commands, sentence
        for target in commands:
            assert is_project(target) in {*known_packages.known(), *NAMES}, sentence


def test_no_sentence_of_the_core_names_a_package_of_the_project_behind_pip_install() -> None:
    for path in (ROOT / "core" / "src").rglob("*.py"):
        for line in path.read_text("utf-8").splitlines():
            assert not re.search(r"pip install (--upgrade )?[\"']?oplet", line), f"{path}: {line.strip()}"


@pytest.mark.environment
def test_every_command_that_is_advised_installs_the_package(clone: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    commands = [install_commands.install_command(package) for package in PACKAGES] + [
        install_commands.install_command(package, extra)
        for package, extra in (("oplet", "cli"), ("oplet", "build"), ("oplet-tools", "graph"), ("oplet-tools", "arrow"))
    ]
    for number, command in enumerate(commands):
        target = tmp_path / str(number)
        # Without an index and without what is required, which only says that pip takes the words for what they are meant.
        words = ["install", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(target), *targets(command)]
        ran = subprocess.run([*pip, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert ran.returncode == 0, command + ran.stdout + ran.stderr
        assert list(target.glob("oplet*.dist-info")), command
