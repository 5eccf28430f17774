"""What README and the pages promise to somebody who has just cloned the repository."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.fresh_install import COMMANDS, code_of_readme, verbs_of_readme, walk
from tests.places import ROOT, name_of

from oplet.plugins import install_commands, known_packages
from oplet_tools.processes import run_python

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "core/*.md", "metapackage/*.md", "plugins/*/*.md", "examples/*/*.md", "benchmarks/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
FOLDERS = [ROOT / "core", *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml")), ROOT / "metapackage"]


def installed_by_pages() -> list[tuple[str, str]]:
    """Of every command that installs something of this project: the page, and a package's name or a folder."""
    found = []
    for page in PAGES:
        for command in re.findall(r"pip install ([^`\n]+)", page.read_text("utf-8")):
            for word in shlex.split(command, comments=True):
                own = word.startswith(("oplet", "./core", "./metapackage", "./plugins"))
                if own and "..." not in word and not word.startswith("oplet-acme-rms-norm-op"):  # that of a tutorial
                    found.append((page.relative_to(ROOT).as_posix(), word.rstrip(".,;:)")))
    return found


def extra_of(word: str) -> tuple[str, str]:
    found = re.fullmatch(r"([^\[=]+)(?:\[(\w+)\])?(?:==.+)?", word)
    assert found, word
    return found[1], found[2] or ""


def test_pages_tell_to_install_packages_and_folders_that_are_here() -> None:
    commands = installed_by_pages()
    assert len(commands) > 15
    folders = {name_of(folder): folder for folder in FOLDERS}
    for page, word in commands:
        target, extra = extra_of(word)
        folder = folders.get(target, ROOT / target)
        assert (folder / "pyproject.toml").is_file(), f"{page}: {word}"
        assert not extra or f"\n{extra} = [" in (folder / "pyproject.toml").read_text(), f"{page}: {word}"


def test_packages_that_are_told_to_be_installed_by_name_come_with_the_way_from_a_clone() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "sh scripts/wheels.sh\n    export PIP_FIND_LINKS=" in readme
    for page in PAGES:
        by_name = [
            word
            for other, word in installed_by_pages()
            if other == page.relative_to(ROOT).as_posix() and word.startswith("oplet")
        ]
        text = page.read_text("utf-8")
        versions_only = all("==" in word for word in by_name)
        own = page.name == "README.md" and page.parent == ROOT
        assert versions_only or own or "README.md#install" in text, f"{page} does not say how this works from a clone"


@pytest.mark.environment
def test_every_package_that_is_told_to_be_installed_by_name_is_found_among_the_wheels_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = subprocess.run(
        ["sh", str(ROOT / "scripts" / "wheels.sh"), str(tmp_path / "wheels"), "--no-build-isolation"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(list((tmp_path / "wheels").glob("*.whl"))) == len(FOLDERS)
    names = sorted({word for _, word in installed_by_pages() if word.startswith("oplet") and "==" not in word})
    assert names
    wanted = [*names, *map(name_of, FOLDERS)]
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", "--force-reinstall"]
    done = subprocess.run([*pip, "--find-links", str(tmp_path / "wheels"), *wanted], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # What messages advise where oplet came from there, with what a package requires of others.
    monkeypatch.setattr(install_commands, "_direct_url", lambda: "")
    monkeypatch.setattr(known_packages, "NAMES_ARE_OURS", False)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    for package, extra in (("oplet-tools", ""), ("oplet-tools", "graph"), ("oplet-litert-delegate", "")):
        command = install_commands.install_command(package, extra)
        words = shlex.split(command.removeprefix("pip install "))
        pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps" if extra else "--quiet"]
        done = subprocess.run([*pip, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, command + done.stdout + done.stderr


def test_readme_lists_every_package_with_its_folder() -> None:
    table = dict(
        re.findall(
            r"^\| `((?:core|metapackage|plugins)[^`]*)/` \| `([^`]+)` \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE
        )
    )
    assert table == {folder.relative_to(ROOT).as_posix(): name_of(folder) for folder in FOLDERS}


def test_the_number_of_operators_is_that_of_the_page() -> None:
    counted = re.search(r"^(\d+) operators\.$", (ROOT / "docs" / "operators.md").read_text("utf-8"), re.MULTILINE)
    assert counted
    assert f"[{counted[1]} operators](docs/operators.md)" in (ROOT / "README.md").read_text("utf-8")


def test_the_first_screen_says_what_it_is_with_a_picture_and_one_command_and_when_not_to_use_it() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    first = text[: text.index("```python")]
    assert len(first.splitlines()) < 40
    assert re.search(r"!\[[^\]]+\]\(docs/gallery/pip-install\.svg\)", first)
    assert re.findall(r"^    (.+)$", first, re.MULTILINE) == ["sh scripts/demo.sh"]
    before_install = text[: text.index("## Install")]
    for words in ("**Status:**", "**When not to use it:**", "<!-- figure: numpy-by-xnnpack -->", "Linux", "macOS", "Windows"):
        assert words in before_install, words


def test_every_page_stands_in_readme_s_table() -> None:
    table = (ROOT / "README.md").read_text("utf-8").partition("## Where to read on")[2].partition("\n## ")[0]
    linked = set(re.findall(r"\]\(docs/([\w-]+\.md)", table))
    # Lists and records that others lead to.
    behind = {"glossary.md", "licences.md", "public-names.md"}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - linked == behind


def test_every_package_runs_on_the_pythons_that_readme_names() -> None:
    assert "Python 3.10 or later" in (ROOT / "README.md").read_text("utf-8")
    for folder in FOLDERS:
        assert '\nrequires-python = ">=3.10"\n' in (folder / "pyproject.toml").read_text("utf-8"), folder


def test_links_of_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"


# What is said of LiteRT -----------------------------------------------------------------------------------------------------

litert = pytest.mark.skipif(importlib.util.find_spec("ai_edge_litert") is None, reason="needs ai-edge-litert")

REGISTERERS = """
import ctypes, glob, os, sys
import ai_edge_litert
from ai_edge_litert.interpreter import InterpreterWithCustomOps

given = []
model = open(sys.argv[1], "rb").read()
try:
    InterpreterWithCustomOps(custom_op_registerers=[given.append], model_content=model).allocate_tensors()
except RuntimeError as error:
    print("unresolved custom op: Atan" in str(error))
print([type(each) for each in given] == [int])
names = ("TfLiteOperatorCreate", "TfLiteRegistrationExternalCreate", "TfLiteOperatorSetInvoke", "TfLiteOpaqueNodeGetInput")
process = ctypes.CDLL(None)
libraries = [ctypes.CDLL(path) for path in glob.glob(os.path.join(os.path.dirname(ai_edge_litert.__file__), "libpywrap*.so*"))]
print(not any(hasattr(library, name) for library in (process, *libraries) for name in names))
"""


@litert
@pytest.mark.skipif(sys.platform != "linux", reason="looks into libraries as Linux has them")
def test_litert_takes_registerers_of_compiled_ops_and_gives_them_an_address_alone(examples: Path) -> None:
    done = run_python(["-c", REGISTERERS, str(examples / "atan" / "atan.tflite")], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["True"] * 3), done.stdout + done.stderr


def test_no_page_says_that_litert_takes_no_custom_op() -> None:
    for page in PAGES:
        text = " ".join(page.read_text("utf-8").split())
        assert not re.search(r"LiteRT[^.]{0,60}(cannot|can not|never|no way)[^.]{0,40}(custom op|delegate)", text), page
        assert not re.search(
            r"(native|compiled|shared)[^.]{0,30}librar[^.]{0,60}(LiteRT only|do not load|cannot be loaded here)", text
        ), page
    for words in ("custom_op_registerers", "compiled"):
        assert words in (ROOT / "README.md").read_text("utf-8")


# README as it stands, with nothing from before ------------------------------------------------------------------------------


def test_every_command_that_readme_lists_is_tried_by_the_walk() -> None:
    tried = {command.arguments.split()[0] for command in COMMANDS}
    assert tried == set(verbs_of_readme())
    assert len(code_of_readme()) == 2


@pytest.mark.environment
def test_a_stranger_walks_through_readme(tmp_path: Path) -> None:
    steps = list(walk(sys.executable, "builtin_ops", tmp_path))
    assert len(steps) > 20
    assert {step.verdict for step in steps} == {"ok"}, [step for step in steps if step.verdict != "ok"]
