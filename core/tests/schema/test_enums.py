"""The schema's enumerations, whose members are made in a quicker way, are what `enum.IntEnum` makes of the same numbers."""

from __future__ import annotations

import copy
import enum
import pickle
from typing import Any

import pytest

from oplet.schema import enums

ENUMS = [each for each in vars(enums).values() if isinstance(each, enum.EnumMeta) and len(each)]


def test_there_are_enumerations() -> None:
    assert enums.BuiltinOperator in ENUMS
    assert len(ENUMS) > 10


@pytest.mark.parametrize("quick", ENUMS, ids=lambda each: each.__name__)
def test_an_enumeration_is_the_one_that_enum_makes(quick: Any) -> None:
    usual: Any = enum.IntEnum(quick.__name__, {member.name: member.value for member in quick})  # type: ignore[misc]
    assert [*quick.__members__] == [*usual.__members__]
    assert set(dir(quick)) >= set(dir(usual))
    for member, its in zip(quick, usual, strict=True):
        assert (member.name, member.value, str(member), repr(member), f"{member}", hash(member), bool(member)) == (
            *(its.name, its.value, str(its), repr(its), f"{its}", hash(its), bool(its)),
        )
        assert quick(member.value) is quick[member.name] is getattr(quick, member.name) is member
        assert pickle.loads(pickle.dumps(member)) is copy.deepcopy(member) is member
        assert member == its == int(member)
        assert member in quick
    for wrong in (
        lambda: quick(12345),
        lambda: quick["NO_NAME"],
        lambda: setattr(quick, usual(0).name if 0 in [*usual] else "X", 3),
    ):
        with pytest.raises((ValueError, KeyError, AttributeError)):
            wrong()
    with pytest.raises(TypeError, match="extend"):
        enum.EnumMeta("More", (quick,), enum.EnumMeta.__prepare__("More", (quick,)))
