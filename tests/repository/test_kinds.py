"""Units alone run unless more is asked for; of sweeps a run takes a part, all parts together are everything, and what tests took is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scripts import changes, sizes
from scripts.check_packages import Checked, affected, folders
from tests.children import run_child
from tests.kinds import Part
from tests.places import ROOT
from tests.repository.test_every_package import ALL, pytest_of

CASES = [f"case {number}" for number in range(1000)]
SWEEPS = """
import pytest
from tests.kinds import part

@pytest.mark.sweep
@pytest.mark.parametrize("number", range(100))
def test_each(number):
    pass

@pytest.mark.sweep(cases=True)
def test_asks():
    print("mine:", *part().among(range(100)))

@pytest.mark.environment
def test_makes():
    pass
"""


def test_every_case_belongs_to_one_part() -> None:
    parts = [list(Part(number, 10).among(CASES)) for number in range(10)]
    assert sorted(case for cases in parts for case in cases) == sorted(CASES)
    for number, cases in enumerate(parts):
        assert Part(number, 10).least(1000) <= len(cases) < 200
    assert list(Part().among(CASES)) == CASES


def test_cases_of_changed_operators_belong_to_every_part() -> None:
    assert all(Part(number, 10, frozenset({"ADD"})).holds("any", {"MUL", "ADD"}) for number in range(10))
    assert sum(Part(number, 10, frozenset({"ADD"})).holds("any", {"MUL"}) for number in range(10)) == 1


def test_a_commit_chooses_the_same_part_each_time_and_others_choose_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "changed_operators", frozenset)
    monkeypatch.setattr(changes, "changed_sweeps", tuple)
    found = set()
    for number in range(40):
        monkeypatch.setattr(changes, "commit", lambda number=number: f"{number:040x}")
        assert Part.of_commit() == Part.of_commit()
        found.add(Part.of_commit().number)
    assert found == set(range(10))
    monkeypatch.setattr(changes, "commit", str)
    assert Part.of_commit() == Part(0, 10, turn=0)


def test_a_sweep_has_its_turn_in_one_commit_of_three_and_in_every_run_of_all() -> None:
    for name in CASES[:20]:
        assert sum(Part(turn=turn).has_turn(name, 3) for turn in range(7, 10)) == 1
        assert Part.parse("all").has_turn(name, 3)
        assert Part.parse("2/10").has_turn(name, 3)


TOGETHER = """
import pytest
pytestmark = pytest.mark.sweep(together=True)

@pytest.mark.parametrize("number", range(9))
def test_each(number):
    pass
"""


def test_sweeps_that_share_what_takes_long_are_all_in_one_part(tmp_path: Path) -> None:
    files = {"tests/test_sweeps.py": TOGETHER}
    ran = [
        len(re.findall(r"test_each\[", pytest_of(tmp_path, files, "tests", f"--part={n}/3", "-m", "", "-v")[1]))
        for n in (1, 2, 3)
    ]
    assert sorted(ran) == [0, 0, 9]


def test_what_takes_long_runs_first(tmp_path: Path) -> None:
    files = {"tests/test_a.py": "def test_quick():\n    pass\n", "tests/test_sweeps.py": TOGETHER}
    found = [pytest_of(tmp_path, files, "tests", f"--part={n}/3", "-m", "", "-v")[1] for n in (1, 2, 3)]
    [output] = [output for output in found if "test_each[8]" in output]
    assert output.index("test_each[8]") < output.index("test_quick")


def test_sweeps_of_a_plugin_or_a_file_that_changed_run_whole_unless_many_did(monkeypatch: pytest.MonkeyPatch) -> None:
    few = frozenset({"plugins/compiled_ops/src/a.py", "plugins/compiled_ops/b.py", "tests/hostile/test_fuzz.py", "docs/x.md"})
    monkeypatch.setattr(changes, "changed_files", lambda: few)
    assert changes.changed_sweeps.__wrapped__() == ("plugins/compiled_ops/", "tests/hostile/test_fuzz.py")
    monkeypatch.setattr(changes, "changed_files", lambda: frozenset(f"plugins/p{number}/a.py" for number in range(9)))
    assert changes.changed_sweeps.__wrapped__() == ()
    monkeypatch.setattr(changes, "changed_files", lambda: None)
    assert changes.changed_sweeps.__wrapped__() == ()


@pytest.mark.parametrize("text", ["0/10", "11/10", "1", "none", "1/0"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="--part is N/M"):
        Part.parse(text)


@pytest.mark.parametrize("processes", [[], ["-p", "xdist", "-n", "2"]])
def test_a_run_takes_a_part_of_the_sweeps_and_all_parts_take_everything(processes: list[str], tmp_path: Path) -> None:
    ran = set()
    for number in range(1, 2 if processes else 4):
        _, output = pytest_of(
            tmp_path, {"tests/test_sweeps.py": SWEEPS}, "tests", f"--part={number}/3", "-m", "sweep", "-v", *processes
        )
        mine = set(re.findall(r"test_each\[(\d+)\]", output))
        assert 15 < len(mine) < 55
        assert "test_asks" in output
        assert not ran & mine
        ran |= mine
    assert processes or ran == set(map(str, range(100)))


def test_who_names_a_test_gets_it_whole(tmp_path: Path) -> None:
    _, output = pytest_of(tmp_path, {"tests/test_sweeps.py": SWEEPS}, "tests/test_sweeps.py::test_each", "-m", "")
    assert "100 passed" in output


FAILING = SWEEPS.replace(
    "range(100))\ndef test_each(number):\n    pass", "range(100))\ndef test_each(number):\n    assert number % 2"
)


@pytest.mark.parametrize("processes", [[], ["-p", "xdist", "-n", "2"]])
def test_a_sweep_that_fails_in_its_part_is_named_with_what_runs_it_whole(processes: list[str], tmp_path: Path) -> None:
    tests = {"tests/test_sweeps.py": FAILING}
    code, output = pytest_of(tmp_path, tests, "tests", "--part=1/10", "-m", "", "--failed-sweeps=failed.txt", *processes)
    assert code == 1
    assert 'what runs them whole: python -m pytest -m "" tests/test_sweeps.py::test_each\n' in output
    failed = (tmp_path / "failed.txt").read_text().splitlines()
    assert failed == ["tests/test_sweeps.py::test_each"]
    _, whole = pytest_of(tmp_path, tests, "-m", "", *failed, *processes)
    assert "50 failed, 50 passed" in whole
    assert "what runs them whole" not in whole


def test_a_part_that_passes_leaves_nothing_to_run_whole(tmp_path: Path) -> None:
    tests = {"tests/test_sweeps.py": SWEEPS, "tests/test_units.py": "def test_fails():\n    assert 0"}
    code, output = pytest_of(tmp_path, tests, "tests", "--part=1/10", "-m", "", "--failed-sweeps=failed.txt")
    assert code == 1
    assert "what runs them whole" not in output
    assert (tmp_path / "failed.txt").read_text() == ""


def test_the_run_of_a_change_runs_whole_what_failed_in_part_and_fails_still() -> None:
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    after = text.partition("--failed-sweeps=")[2]
    assert '-m "" --maxfail=200 "${failed[@]}" || true\n    exit "$code"' in after


@pytest.mark.parametrize("processes", [[], ["-p", "xdist", "-n", "2"]])
def test_what_each_test_took_is_kept_and_told_by_room_and_kind(processes: list[str], tmp_path: Path) -> None:
    tests = {**ALL, "tests/hostile/test_sweeps.py": SWEEPS}
    arguments = ["--durations-log=took.jsonl", "--part=all", "-m", "", "--took=lint=120", *processes]
    code, output = pytest_of(tmp_path, tests, *arguments)
    assert code == 0, output
    lines = [json.loads(line) for line in (tmp_path / "took.jsonl").read_text().splitlines()]
    assert len(lines) == 106
    assert {(line["room"], line["kind"]) for line in lines} == {
        ("core", "unit"),
        ("plugins/one", "unit"),
        ("plugins/two", "unit"),
        ("tests/test_a.py", "unit"),
        ("tests/hostile", "sweep"),
        ("tests/hostile", "environment"),
    }
    assert {line["outcome"] for line in lines} == {"passed"}
    assert all(line["seconds"] >= 0 and line["processor"] >= 0 for line in lines)
    assert re.search(r"^all +0\.0 \(4\) +0\.0 \(101\) +0\.0 \(1\)", output, re.MULTILINE)
    assert "2.0 minutes before the tests: lint 2.0" in output


def test_markers_are_of_two_kinds_and_pytest_alone_runs_units() -> None:
    run_child(["git", "grep", "-l", "mark[.]slow", "--", "*.py"], cwd=ROOT, code=1)  # none has it
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert '"-m", "not sweep and not environment"]' in text
    assert re.findall(r'^    "(\w+): ', text, re.MULTILINE) == ["sweep", "environment"]


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_change_concerns_its_package_and_the_tests_elsewhere_that_import_it(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "core/src/oplet/__init__.py": "",
            "core/src/oplet/low.py": "",
            "core/src/oplet/high.py": "from oplet import low",
            "core/src/oplet/aside.py": "",
            "core/tests/test_low.py": "",
            "plugins/one/pyproject.toml": "",
            "plugins/one/src/oplet_one/__init__.py": "",
            "plugins/one/tests/test_one.py": "import oplet_one",
            "tests/rooms/helper.py": "",
            "tests/rooms/test_high.py": "def test() -> None:\n    from oplet.high import it",
            "tests/rooms/test_aside.py": "import oplet.aside",
            "tests/rooms/test_helper.py": "from tests.rooms.helper import it",
        },
    )
    assert affected(root, ["core/src/oplet/low.py"]) == Checked(["core"], ["tests/rooms/test_high.py"], [])
    assert affected(root, ["plugins/one/tests/test_one.py"]) == Checked(["plugins/one"], [], [])
    helped = affected(root, ["tests/rooms/helper.py", "README.md"])
    assert helped == Checked([], ["tests/rooms/test_helper.py"], ["tests/rooms/helper.py"])
    assert affected(root, ["docs/command.md"]) == Checked([], [], [])


@pytest.mark.parametrize(
    ("changed", "concerned"),
    [
        (None, True),
        (frozenset({"plugins/serve/pyproject.toml"}), True),
        (frozenset({"requirements-dev.txt"}), True),
        (frozenset({"scripts/wheels.sh"}), True),
        (frozenset({"plugins/build/tests/test_wheel.py"}), True),
        (frozenset({"pyproject.toml", "core/src/oplet/errors.py", "tests/hostile/test_size.py"}), False),
    ],
)
def test_environments_are_made_after_a_change_of_packaging_or_of_their_room(
    changed: frozenset[str] | None, concerned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "changed_files", lambda: changed)
    assert changes.concerns_environments.__wrapped__("plugins/build/tests") is concerned


def test_packages_keep_within_their_budgets_of_lines() -> None:
    assert set(sizes.BUDGET) == set(folders(ROOT).values())
    for folder, budget in sizes.BUDGET.items():
        count = sizes.lines(ROOT / folder)
        assert count <= budget, f"{folder} has {count:,} lines; take some away, or raise its budget in scripts/sizes.py"
    assert len(sizes.table()) == len(sizes.BUDGET)


# The state of a new user ----------------------------------------------------------------------------------------------------


def set_in(text: str) -> set[str]:
    """The variables OPLET_... that a script or a module sets."""
    return set(re.findall(r"(?<![\w{$])(OPLET_\w+)=", text)) | set(
        re.findall(r"""(?:setdefault\(|setenv\(|environ\[|putenv\()\s*["'](OPLET_\w+)["'](?:\]\s*=(?!=)|,)""", text)
    )


def test_nothing_sets_a_variable_of_oplet_for_all_tests() -> None:
    """Where caches lie may be set, so that they begin empty; anything else would test what no new user runs."""
    sources = [*(ROOT / "core" / "src").rglob("*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    read = {name for path in sources for name in re.findall(r"OPLET_[A-Z_]+", path.read_text("utf-8"))} - {"OPLET_CACHE_DIR"}
    assert len(read) > 3
    files = [ROOT / "conftest.py", ROOT / "tests" / "fixtures.py", ROOT / "pyproject.toml", ROOT / ".ci" / "run"]
    files += [ROOT / "scripts" / name for name in ("test.sh", "check", "venv.sh", "steps.sh", "check_packages.py")]
    files += (ROOT / ".github" / "workflows").iterdir()
    assert {path.name: found for path in files if (found := set_in(path.read_text("utf-8")) & read)} == {}


@pytest.mark.parametrize(
    "text",
    ["export OPLET_PLANS=off", 'env OPLET_PLANS="off" sh x', 'os.environ["OPLET_PLANS"] = "off"', 'os.environ.setdefault("OPLET_PLANS", "off")', 'patch.setenv("OPLET_PLANS", "off")'],
)  # fmt: skip
def test_a_variable_that_is_set_is_seen(text: str) -> None:
    assert set_in(text) == {"OPLET_PLANS"}
    assert set_in('if os.environ["OPLET_PLANS"] == "off": ${OPLET_PLANS:-x}') == set()
