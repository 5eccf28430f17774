"""Registrations: what may be added, which one is found, and what is imported when."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from oplet import BuiltinOperator, MutableOpResolver, Registration
from oplet.errors import ResolverError
from oplet.ops.serving.provenance import Provenance
from oplet.ops.serving.resolver import ChainOpResolver, OpResolver

A = Registration(invoke=print)
B = Registration(bind=lambda context, node: print)


def test_a_builtin_is_found_by_code_number_or_name() -> None:
    resolver = MutableOpResolver()
    resolver.add_builtin("CONV_2D", A, 1, 3)
    resolver.add_builtin(BuiltinOperator.ADD, B)
    found = resolver.find_op(BuiltinOperator.CONV_2D, 2)
    assert found is not None
    assert (found.builtin_code, found.version, found.name, found.invoke) == (BuiltinOperator.CONV_2D, 2, "CONV_2D", print)
    assert resolver.find_op(3, 3) is not None
    assert resolver.versions(3) == [1, 2, 3]
    assert resolver.versions(BuiltinOperator.ADD) == [1]


@pytest.mark.parametrize(("op", "version"), [(3, 4), (3, 0), (0, 1), ("CONV_2D", 1), ("Atan", 1)])
def test_what_nobody_added_is_none(op: Any, version: int) -> None:
    resolver = MutableOpResolver()
    resolver.add_builtin("CONV_2D", A, 1, 3)
    assert resolver.find_op(op, version) is None


def test_a_custom_op_is_found_by_the_name_it_was_added_under() -> None:
    resolver = MutableOpResolver()
    resolver.add_custom("Atan", Registration(custom_name="ATAN", invoke=print), 2, 4)
    found = resolver.find_op("Atan", 3)
    assert found is not None
    assert (found.name, found.version, found.builtin_code) == ("Atan", 3, BuiltinOperator.CUSTOM)
    assert resolver.find_op("ATAN", 3) is None


def test_a_later_registration_replaces_an_earlier_one_in_its_versions() -> None:
    resolver = MutableOpResolver()
    resolver.add_builtin("ADD", A, 1, 3)
    assert resolver.find_op(0, 2) is not None
    resolver.add_builtin("ADD", B, 2, 2)
    found = [resolver.find_op(0, version) for version in (1, 2, 3)]
    assert [f is not None and f.bind is B.bind for f in found] == [False, True, False]


def test_an_entry_that_was_replaced_as_a_whole_is_gone_from_the_entries() -> None:
    resolver = MutableOpResolver()
    resolver.add_custom("Atan", A)
    resolver.add_custom("Atan", B)
    assert [entry.target for entry in resolver.entries("Atan")] == [B]
    assert [entry.target for entry in resolver.entries()] == [B]


def test_add_all_keeps_where_entries_came_from_and_replaces_what_both_have() -> None:
    theirs = MutableOpResolver(Provenance("x", "oplet-x", "1.2", "oplet_x"))
    theirs.add_custom("Atan", A, 1, 2)
    ours = MutableOpResolver()
    ours.add_custom("Atan", B, 1, 1)
    ours.add_custom("Sign", B)
    ours.add_all(theirs)
    found = [ours.find_op(op, version) for op, version in (("Atan", 1), ("Atan", 2), ("Sign", 1))]
    assert [str(f.provenance) for f in found if f] == ["oplet-x 1.2", "oplet-x 1.2", "application"]


def test_a_lazy_registration_is_imported_when_it_is_needed(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy_kernel.py").write_text("from oplet import Registration\nREGISTRATION = Registration(invoke=print)\n")
    monkeypatch.syspath_prepend(tmp_path)
    resolver = MutableOpResolver()
    resolver.add_builtin("ADD", "lazy_kernel:REGISTRATION", 1, 2)
    resolver.add_builtin("SUB", "lazy_kernel")
    assert resolver.versions(0) == [1, 2]
    assert "lazy_kernel" not in sys.modules
    found = resolver.find_op(0, 2)
    assert found is not None
    assert (found.name, found.version) == ("ADD", 2)
    assert resolver.find_op(0, 2) is found
    assert resolver.find_op(BuiltinOperator.SUB, 1) is not None
    monkeypatch.delitem(sys.modules, "lazy_kernel")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no_such_module_anywhere:X", "ModuleNotFoundError.*upgrade or uninstall"),
        ("math:NO_SUCH_NAME", "AttributeError"),
        ("math:pi", "is a float, not a Registration"),
    ],
)
def test_a_lazy_registration_that_is_none_is_reported_with_its_package(target: str, reason: str) -> None:
    resolver = MutableOpResolver(Provenance("x", "oplet-x", "1.2", "oplet_x"))
    resolver.add_custom("Atan", target)
    with pytest.raises(ResolverError, match=f"Atan|{target}") as caught:
        resolver.find_op("Atan", 1)
    assert "oplet-x 1.2" in str(caught.value)
    caught.match(reason)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("KONV_2D", A), "no built-in operator called 'KONV_2D'"),
        ((100_000, A), "out of range: 100000"),
        ((-5, A), "out of range: -5"),
        (("ADD", A, 0), "versions 0 to 0"),
        (("ADD", A, 3, 2), "versions 3 to 2"),
        (("ADD", Registration()), "neither invoke nor bind"),
        (("ADD", ":NAME"), "':NAME'"),
        (("ADD", None), "neither a Registration nor 'module:NAME'"),
    ],
)
def test_a_builtin_that_makes_no_sense_is_refused(arguments: Any, reason: str) -> None:
    with pytest.raises(ResolverError, match=reason):
        MutableOpResolver().add_builtin(*arguments)


@pytest.mark.parametrize(("name", "reason"), [("", "empty name"), (3, "3, which is not a name"), (None, "not a name")])
def test_a_custom_name_that_is_none_is_refused(name: Any, reason: str) -> None:
    with pytest.raises(ResolverError, match=reason):
        MutableOpResolver().add_custom(name, A)


def test_errors_are_value_errors_too() -> None:
    assert issubclass(ResolverError, ValueError)


def test_a_chain_asks_the_first_resolver_first() -> None:
    first, second = MutableOpResolver(Provenance("first")), MutableOpResolver(Provenance("second"))
    first.add_custom("Atan", A, 2, 2)
    second.add_custom("Atan", B, 1, 2)
    chain = ChainOpResolver([first, second])
    found = [chain.find_op("Atan", version) for version in (1, 2)]
    assert [str(f.provenance) for f in found if f] == ["second", "first"]
    assert chain.find_op("Atan", 3) is None
    assert chain.versions("Atan") == [1, 2]
    assert (chain.why("Atan", 2), chain.why("Atan", 9)) == ("registered", "nobody registered it")


def test_a_resolver_of_ones_own_needs_find_op_and_entries_alone() -> None:
    class Only(OpResolver):
        def find_op(self, op: Any, version: int) -> Registration | None:
            return A if op == "Atan" else None

    assert Only().why("Atan", 1) == "registered"
    assert Only().why("Sign", 1) == "nobody registered it"
