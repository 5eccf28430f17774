"""The gate judges by ratios that hold twice. What it measures is never asserted on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks import gate
from benchmarks.gate import Measured, Tree, above, measure, ratios, table
from tests.places import EXAMPLES, ROOT


def test_a_ratio_is_the_median_of_the_turns_now_over_before() -> None:
    before = Measured("instructions", {"open": [100, 200, 400], "gone": [1, 1, 1]})
    now = Measured("instructions", {"open": [110, 200, 4000], "new": [1, 1, 1]})
    assert ratios(before, now) == {"open": pytest.approx(1.1)}


@pytest.mark.parametrize(
    ("first", "second", "slower"),
    [
        ({"open": 1.06, "invoke": 1.0}, {"open": 1.051, "invoke": 1.2}, ["open"]),
        ({"open": 1.06}, {"open": 1.05}, []),
        ({"open": 1.0}, {"open": 9.0}, []),
        ({"open": 1.2}, {}, []),
        ({"open": 0.5}, {"open": 0.5}, []),
    ],
)
def test_only_what_is_above_the_limit_twice_is_slower(
    first: dict[str, float], second: dict[str, float], slower: list[str]
) -> None:
    assert above([first, second], 1.05) == slower


def test_trees_are_measured_in_turns_and_what_fills_their_caches_is_not_counted() -> None:
    order: list[str] = []

    def turn(tree: Tree, models: Sequence[Path], compiled: bool) -> tuple[str, dict[str, float]]:
        order.append(tree.sources.name)
        return "instructions", {"open": float(len(order))}

    trees = [Tree(Path(name), Path("caches")) for name in ("before", "now")]
    before, now = measure(trees, [], 3, turn=turn)
    assert order == ["before"] * 2 + ["now"] * 2 + ["before", "now", "now", "before", "before", "now"]
    assert before == Measured("instructions", {"open": [5, 8, 9]})
    assert now == Measured("instructions", {"open": [6, 7, 10]})


def test_the_table_has_a_line_for_each_measurement_with_its_unit() -> None:
    before, now = Measured("nanoseconds", {"open": [2000.0]}), Measured("nanoseconds", {"open": [3000.0]})
    head, line = table(before, now, ratios(before, now))
    assert head.endswith("nanoseconds")
    assert line.split() == ["open", "1.500", "2,000", "3,000"]


def test_the_second_repetition_is_made_only_where_the_first_is_above_and_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def measured(*_: Any) -> list[Measured]:
        return [Measured("instructions", {"open": [1.0]}), Measured("instructions", {"open": [given.pop(0)]})]

    monkeypatch.setattr(gate, "measure", measured)
    for numbers, slower, left in (([1.0, 2.0], [], 1), ([1.2, 1.0], [], 0), ([1.2, 1.2, 1.0], ["open"], 1)):
        given[:] = numbers
        assert gate.judged([], [], 1, 1.05, False) == slower
        assert len(given) == left


@pytest.mark.parametrize(("slower", "code"), [([], 0), (["open"], 1)])
def test_the_exit_code_is_the_verdict(slower: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(gate, "export", lambda revision, folder: folder.mkdir())
    monkeypatch.setattr(gate, "judged", lambda *_: slower)
    monkeypatch.setattr(gate, "can_compile", lambda trees: False)
    assert gate.main(["--base", "v0"]) == code
    assert ("open: above 1.05 in two of two repetitions, beside v0" in capsys.readouterr().err) is bool(code)


def test_what_is_measured_sees_the_trees_own_sources_and_no_setting_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPLET_PLANS", "off")
    found = gate.environment(Tree(ROOT, Path("caches")), compiled=False)
    assert found["PYTHONPATH"].startswith(str(ROOT / "core" / "src"))
    assert {name for name in found if name.startswith("OPLET_")} == {"OPLET_CACHE_DIR", "OPLET_PREFER"}
    compiled = gate.environment(Tree(ROOT, Path("caches")), compiled=True)
    assert {name for name in compiled if name.startswith("OPLET_")} == {"OPLET_CACHE_DIR"}


@pytest.mark.sweep
def test_every_measurement_counts_something(tmp_path: Path) -> None:
    (tmp_path / "caches").mkdir()
    (tmp_path / "one.tflite").write_bytes(gate.one_node())
    models = [tmp_path / "one.tflite", EXAMPLES / "digits" / "digits_int8.tflite"]
    unit, used = gate.run(Tree(ROOT, tmp_path / "caches"), models, compiled=False)
    assert unit in ("instructions", "nanoseconds")
    assert len(used) == 4
    assert min(used.values()) > 0
