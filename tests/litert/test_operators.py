"""The operators that are registered: all of the format's, in LiteRT's versions, and described truthfully."""

from __future__ import annotations

import csv

import pytest
from tests.places import ROOT

from oplet import BuiltinOperator, PluginManager
from oplet_builtin_ops import FAMILIES, VERSIONS
from oplet_tools.describing import operators

FACTS = ROOT.parent / "shared" / "facts" / "builtin_ops.csv"
PACKAGE = "oplet-builtin-ops"

#: Members of the enumeration that are no operators, or that nothing can serve.
NOT_OPERATORS = {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES", "CONCAT_EMBEDDINGS"}


@pytest.mark.skipif(not FACTS.exists(), reason="the table of LiteRT's versions lies outside the project")
def test_every_version_that_litert_registers_is_registered() -> None:
    resolver = PluginManager().resolver()
    with FACTS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["min_version"]]
    assert len(rows) == 172
    missing = {
        f"{row['name']} version {version}"
        for row in rows
        for version in range(int(row["min_version"]), int(row["max_version"]) + 1)
        if resolver.find_op(BuiltinOperator[row["name"]], version) is None
    }
    assert not missing


def test_every_operator_of_the_schema_has_a_kernel() -> None:
    resolver = PluginManager().resolver()
    assert {op.name for op in BuiltinOperator if not resolver.versions(op)} == NOT_OPERATORS


@pytest.mark.parametrize("name", ["Mfcc", "AudioSpectrogram", "TFLite_Detection_PostProcess", "aeq.hadamard_rotation"])
def test_litert_s_default_custom_ops_are_there(name: str) -> None:
    assert PluginManager().resolver().find_op(name, 1) is not None


def test_every_kernel_lives_in_the_module_that_is_named_like_its_operator_or_in_that_of_its_family() -> None:
    homes = {op: f"oplet_builtin_ops.{module}:{op}" for module, ops in FAMILIES.items() for op in ops.split()}
    entries = PluginManager(load=[PACKAGE]).resolver().entries()
    targets = {entry.op.name: entry.target for entry in entries if isinstance(entry.op, BuiltinOperator)}
    assert targets == {op: homes.get(op, f"oplet_builtin_ops.ops.{op.lower()}:REGISTRATION") for op in VERSIONS}
    own = {path.stem for path in (ROOT / "plugins" / "builtin_ops" / "src" / "oplet_builtin_ops" / "ops").glob("[!_]*.py")}
    assert own == {op.lower() for op in VERSIONS.keys() - homes.keys()}


def test_the_page_about_operators_is_not_stale(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "operators.md").read_text()
    operators.main()
    assert page == capsys.readouterr().out, "run: python -m oplet_tools.describing.operators > docs/operators.md"
