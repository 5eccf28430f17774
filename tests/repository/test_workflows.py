"""What GitHub runs is what anybody can run; it has no rights that it does not need, and runs no code that may change."""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts import contents, packages
from scripts.requirements import ROOT, tomllib
from tests.kinds import part

import oplet

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.iterdir())
files = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[Any, Any] = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    loaded["on"] = loaded.pop(True)  # YAML 1.1 takes the word for a truth value
    return loaded


def steps(name: str) -> Iterator[dict[str, Any]]:
    for job in workflow(name)["jobs"].values():
        yield from job["steps"]


def commands(name: str) -> list[str]:
    return [step["run"] for step in steps(name) if "run" in step]


@files
def test_a_header_says_what_it_is_and_that_it_is_small(file: Path) -> None:
    assert file.suffix == ".yml"
    head = " ".join(line.lstrip("# ") for line in file.read_text("utf-8").splitlines() if line.startswith("#"))
    assert "in a clone" in head
    assert len(file.read_text("utf-8").splitlines()) < 80


@files
def test_actions_are_pinned_by_commit_and_say_their_release(file: Path) -> None:
    uses = re.findall(r"^\s*-?\s*uses:.*$", file.read_text("utf-8"), re.MULTILINE)
    assert len(uses) == sum("uses" in step for step in steps(file.name)) > 0
    for line in uses:
        assert re.fullmatch(r"\s*(- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+(\.\d+)+", line), line


def test_an_action_has_the_same_pin_everywhere() -> None:
    pins: dict[str, set[str]] = {}
    for file in FILES:
        for step in steps(file.name):
            if "uses" in step:
                action, _, pin = step["uses"].partition("@")
                pins.setdefault(action, set()).add(pin)
    assert {action for action, found in pins.items() if len(found) > 1} == set()


@files
def test_nothing_has_rights_or_secrets_that_it_does_not_need(file: Path) -> None:
    found = workflow(file.name)
    # mike pushes the branch that GitHub Pages serves.
    allowed = {"publish": {"contents": "write"} if file.name == "site.yml" else {"id-token": "write"}}
    assert found["permissions"] in ({}, {"contents": "read"})
    for name, job in found["jobs"].items():
        rights = job.get("permissions", found["permissions"])
        assert rights == allowed.get(name, {"contents": "read"}), name
        assert job["timeout-minutes"] <= 120
    text = file.read_text("utf-8")
    assert not re.search(r"secrets|password|token:(?! write)|api-key|pull_request_target|workflow_run", text, re.IGNORECASE)
    # What others write, names of branches above all, gets into no command but as a variable of the environment.
    assert not any("${{" in command for command in commands(file.name))
    for step in steps(file.name):
        if str(step.get("uses")).startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is (file.name == "site.yml")


def test_linux_calls_what_a_clone_calls_with_every_python_that_the_packages_name() -> None:
    linux = workflow("tests.yml")["jobs"]["linux"]
    [running] = [step for step in linux["steps"] if "run" in step]
    assert running["run"] == ".ci/run $EVERYTHING"
    assert running["env"] == {"EVERYTHING": "${{ github.event_name == 'schedule' && 'all' || '' }}"}
    assert linux["steps"][0]["with"]["fetch-depth"] == 0
    assert os.name != "posix" or (ROOT / ".ci" / "run").stat().st_mode & 0o111
    pythons = linux["strategy"]["matrix"]["python"]
    for folder in packages.folders():
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        named = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
        # A dependency may end earlier: the package installs on later ones too, and says so when it is used.
        ends = any("python_version <" in requirement for requirement in project["dependencies"])
        assert named == (pythons[: len(named)] if ends else pythons), folder
        assert len(named) > 2
        assert project["requires-python"] == f">={pythons[0]}"


def test_macos_and_windows_run_the_units_of_all_packages() -> None:
    job = workflow("tests.yml")["jobs"]["elsewhere"]
    systems = job["strategy"]["matrix"]["system"]
    assert [system.partition("-")[0] for system in systems] == ["macos", "windows"]
    assert job["runs-on"] == "${{ matrix.system }}"
    assert [step["run"] for step in job["steps"] if "run" in step] == [
        "python -m pip install -r requirements-dev.txt",
        "python -m pytest -n 2",
    ]


def test_one_job_holds_a_change_against_what_was_before_it_by_programs_that_are_here() -> None:
    job = workflow("tests.yml")["jobs"]["beside"]
    assert job["steps"][0]["with"]["fetch-depth"] == 0  # the tags and the commit that the change began from
    running = [step["run"] for step in job["steps"] if "run" in step]
    assert running == [
        "python -m pip install -r requirements-test.txt",
        "python -m scripts.downstream",
        "python -m benchmarks.gate",
    ]
    for command in running[1:]:
        assert (ROOT / (command.split()[-1].replace(".", "/") + ".py")).is_file(), command


def test_every_night_all_of_the_emulated_room_runs_where_its_machines_can_be_made() -> None:
    job = workflow("emulated.yml")["jobs"]["emulated"]
    assert job["container"].startswith("debian:")
    [step] = [step for step in job["steps"] if "pytest" in step.get("run", "")]
    assert step["run"].endswith('python -m pytest -m "" --part all tests/emulated')
    assert (ROOT / "tests" / "emulated").is_dir()


def test_every_night_models_answer_in_a_browser_s_python_as_they_do_here() -> None:
    running = " ".join(step["run"] for step in workflow("browser.yml")["jobs"]["pyodide"]["steps"] if "run" in step)
    for program in re.findall(r"(?:scripts|tests)/\S+", running):
        assert (ROOT / program).is_file(), program
    assert running.count("scripts/browser/answers.py") == 2
    assert "diff here there" in running
    assert running.endswith('OPLET_PYODIDE=node_modules/pyodide python -m pytest -m "" tests/repository/test_tryout.py')


def test_changes_nights_and_only_a_tag_of_a_version_start_them() -> None:
    assert set(workflow("tests.yml")["on"]) == {"push", "pull_request", "schedule"}
    assert set(workflow("emulated.yml")["on"]) == set(workflow("browser.yml")["on"]) == {"schedule"}
    assert workflow("release.yml")["on"] == workflow("site.yml")["on"] == {"push": {"tags": ["v*"]}}


def test_the_site_is_published_by_what_builds_it_in_a_clone() -> None:
    [command] = commands("site.yml")
    assert 'OPLET_SITE_COMMAND="mike deploy" sh scripts/site.sh --push' in command
    assert "mkdocs build" in (ROOT / "scripts" / "site.sh").read_text("utf-8")


def test_a_release_publishes_what_was_built_the_core_last_and_a_person_allows_it() -> None:
    jobs = workflow("release.yml")["jobs"]
    assert 'python -m scripts.packages dist --tag "$GITHUB_REF_NAME"' in commands("release.yml")
    assert any(
        "pip install" in command and "ziglang" in command and "cyclonedx" in command for command in commands("release.yml")
    )
    [twice] = [command for command in commands("release.yml") if "scripts.reproduced dist again" in command]
    assert "python -m scripts.packages again" in twice
    assert "OPLET_COMPILED_OBJECTS=" in twice  # no object file of the first build
    assert commands("release.yml")[-1] == "python -m scripts.release_files dist"
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["environment"] == "pypi"
    published = [step["with"]["packages-dir"] for step in jobs["publish"]["steps"] if "pypi-publish@" in step["uses"]]
    assert published == ["dist/plugins", "dist/core"]


@pytest.mark.parametrize("options", [["--here"], []], ids=["here", "all-platforms"])
def test_a_release_builds_every_package(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not options and not part().whole:
        pytest.skip("kernels for all platforms take an hour to compile; `.ci/run all` does it")
    pytest.importorskip("numba", reason="it compiles the kernels, and is not in requirements-test.txt")
    packages.main([str(tmp_path), *options])
    told = {Path(line) for line in capsys.readouterr().out.splitlines()}
    assert told == {path for path in tmp_path.rglob("*") if path.is_file()}
    made = 0
    for folder in packages.folders():
        name = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["name"].replace("-", "_")
        place = tmp_path / ("plugins" if folder.parent.name == "plugins" else "core")
        wheels = list(place.glob(f"{name}-{oplet.__version__}-py3-none-*.whl"))
        made += 1 + len(wheels)
        platforms = packages.targets(folder) if packages.has_ziglang() and not options else []
        assert len(wheels) == max(1, len(platforms))
        for file in wheels:
            with zipfile.ZipFile(file) as wheel:
                metadata = Parser().parsestr(wheel.read(f"{name}-{oplet.__version__}.dist-info/METADATA").decode())
                assert metadata["Version"] == oplet.__version__
                assert folder.name == "metapackage" or any(entry.endswith("/py.typed") for entry in wheel.namelist())
                assert any(entry.endswith("dist-info/licenses/LICENSE") for entry in wheel.namelist())
                # What is compiled is in the wheels of the platforms that it was compiled for, and nowhere else.
                suffix = ".dylib" if "-macosx_" in file.name else ".dll" if "-win_" in file.name else ".so"
                assert any(entry.endswith(suffix) for entry in wheel.namelist()) is not file.name.endswith("-any.whl")
                assert contents.wrong(file) == []
        assert contents.wrong(place / f"{name}-{oplet.__version__}.tar.gz") == []
        with tarfile.open(place / f"{name}-{oplet.__version__}.tar.gz") as sdist:
            assert f"{name}-{oplet.__version__}/pyproject.toml" in sdist.getnames()
    assert len(told) == made


@pytest.mark.parametrize("tag", ["v9.9.9", oplet.__version__, "v0.1"])
def test_a_tag_of_another_version_builds_nothing(tag: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"The tag is {tag}, and the version is {oplet.__version__}"):
        packages.main([str(tmp_path / "dist"), "--tag", tag])
    assert not (tmp_path / "dist").exists()


def test_the_changelog_has_what_is_unreleased_first_and_then_dates() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads[0] == "Unreleased"
    dates = [match[1] for head in heads[1:] if (match := re.fullmatch(r"(?:\d+\.\d+\.\d+ — )?(\d{4}-\d\d-\d\d)", head))]
    assert len(dates) == len(heads) - 1
    assert dates == sorted(dates, reverse=True)
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
