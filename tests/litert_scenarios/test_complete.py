"""No scenario of LiteRT's is left out without a reason."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from .scenarios import NO_COUNTERPART, SCENARIOS

HERE = Path(__file__).parent
#: How many tests LiteRT's files have; of interpreter_test.cc those about delegates and the memory that they share.
COUNTS = {"core/subgraph_test.cc": 15, "graph_info_test.cc": 19, "delegates/delegate_test.cc": 52, "interpreter_test.cc": 12}
#: Rows of tables that name a test of LiteRT, by the function that goes through the table.
TABLES = {"Case": "test_graphs_are_cut_as_litert_cuts_them", "Refused": "test_what_litert_refuses_is_refused"}


def stated() -> set[tuple[str, str]]:
    """LiteRT's name and module.function, of everything that is marked in this folder."""
    found = set()
    for path in HERE.glob("test_*.py"):
        tree = ast.parse(path.read_text())
        for function in tree.body:
            for call in getattr(function, "decorator_list", []):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "scenario":
                    found |= {(ast.literal_eval(name), f"{path.stem}.{function.name}") for name in call.args}  # type: ignore[attr-defined]
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in TABLES:
                found.add((ast.literal_eval(call.args[0]), f"{path.stem}.{TABLES[call.func.id]}"))  # type: ignore[attr-defined]
    return found


def test_every_scenario_is_stated_or_has_a_reason() -> None:
    assert Counter(scenario.file for scenario in SCENARIOS) == COUNTS
    names = [scenario.litert for scenario in SCENARIOS]
    assert len(set(names)) == len(names)
    assert {scenario.litert for scenario in SCENARIOS if not scenario.here} == NO_COUNTERPART.keys()
    known = stated()
    assert {name for name, _ in known} == set(names) - NO_COUNTERPART.keys()
    assert {(scenario.litert, scenario.here) for scenario in SCENARIOS if scenario.here} <= known
