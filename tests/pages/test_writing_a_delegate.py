"""docs/writing-a-delegate.md, run as it is written."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.places import ROOT

from oplet_testing import DelegateContract

PAGE = ROOT / "docs" / "writing-a-delegate.md"


def names_of_the_page() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "page"}
    page = PAGE.read_text()
    for block in re.finditer(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        before = page.count("\n", 0, block.start(1))
        exec(compile("\n" * before + block[1], str(PAGE), "exec"), names)
    return names


@pytest.mark.sweep
def test_the_page_runs() -> None:
    contract = names_of_the_page()["TestContract"]()
    for name in dir(contract):
        if name.startswith("test_"):
            getattr(contract, name)()


@pytest.mark.sweep
def test_its_other_delegates_keep_the_contract_too() -> None:
    names = names_of_the_page()
    about = {"model": names["MODEL"], "inputs": names["TestContract"].inputs}
    for delegate in (names["OnDevice"], names["Largest"]):
        contract = type("Contract", (DelegateContract,), {**about, "delegate": delegate})()
        for name in dir(contract):
            if name.startswith("test_"):
                getattr(contract, name)()


def test_the_table_of_the_contract_is_complete() -> None:
    page = PAGE.read_text().partition("## Testing it")[2].partition("## Publishing")[0]
    rules = {"test_" + rule.replace(" ", "_") for rule in re.findall(r"^\| ([^|]+?) \|", page, re.MULTILINE)}
    assert rules - {"test_rule"} == {name for name in vars(DelegateContract) if name.startswith("test_")}
