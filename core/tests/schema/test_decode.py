"""Tables that are read together, because many share a vtable, say what they say when they are read one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oplet.schema import enums, options, stablehlo_options, tables
from oplet.schema.columns import LazyTables
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet.schema.table import Field, Table
from oplet.schema.table_decoder import TableDecoder

#: Around the number from which on tables are read together.
COUNTS = (1, 2, 11, 12, 13, 40)
#: Those for sets of fields that only large classes have.
FEWER = (12,)
#: Subsets of a class's fields that are tried: none, all, one each, all but one each, and some by chance.
CHANCE = 4


def classes() -> list[type[Table]]:
    """Every table that a model file may hold."""
    found: dict[type[Table], None] = {}
    for module in (tables, options, stablehlo_options):
        found.update((v, None) for v in vars(module).values() if isinstance(v, type) and issubclass(v, Table) and v is not Table)
    return list(found)


def holder(cls: type[Table]) -> type[Table]:
    """A root table with a vector of some class."""
    return type("Holder", (Table,), {"items": Field(0, "tables", table=cls)})


def value(field: Field, number: int, depth: int) -> Any:
    """A value for a field, another one for each number, never the default."""
    if field.kind == "scalar":
        if field.enum is not None:
            members = [member for member in field.enum if member != field.default]
            return members[number % len(members)] if members else None
        if field.number == "bool":
            return not field.default
        if field.number == "float32":
            return 0.5 + number
        return 1 + number % 100 + (field.default or 0)
    if field.kind == "string":
        return "n" * (number % 5) + ("é" if number % 7 == 3 else "")
    if field.kind == "vector":
        return (np.arange(number % 4) + number % 2).astype(field.dtype)
    if field.kind == "table":
        return filled(field.table, [f.name for f in field.table.fields], number, depth + 1) if depth < 2 else field.table()
    if field.kind == "tables":
        if depth >= 2:
            return []
        names = [f.name for f in field.table.fields]
        return [filled(field.table, names, number + n, depth + 1) for n in range(number % 3)]
    members = list(field.members.values())
    member = members[number % len(members)]
    return filled(member, [f.name for f in member.fields], number, depth + 1) if depth < 2 else member()


def filled(cls: type[Table], names: list[str], number: int, depth: int = 0) -> Table:
    given = {f.name: v for f in cls.fields if f.name in names and (v := value(f, number, depth)) is not None}
    return cls(**given)


def subsets(cls: type[Table]) -> Iterator[list[str]]:
    names = [field.name for field in cls.fields]
    yield []
    yield names
    if len(names) > 1:
        yield from ([name] for name in names)
    if len(names) > 2:
        yield from ([other for other in names if other != name] for name in names)
    chance = random.Random(cls.__name__)
    yield from (chance.sample(names, chance.randint(0, len(names))) for _ in range(CHANCE if len(names) > 2 else 0))


def check(items: list[Any]) -> None:
    cls = type(items[0])
    root = holder(cls)
    buffer = memoryview(encode(root(items=items)))
    single = TableDecoder(buffer, "the model", []).root(root)
    unknown: list[str] = []
    together = decode(root, buffer, "the model", unknown)
    assert single.items == items  # what was written is what is read
    assert together.items == items
    assert [table.__dict__.keys() for table in together.items] == [table.__dict__.keys() for table in single.items]
    assert not unknown
    rows = decode(root, buffer, lazy=[cls]).items
    assert isinstance(rows, LazyTables)
    assert [rows.table_at(number) for number in range(len(rows))] == items
    for field in cls.fields:
        if field.kind == "union":
            assert rows.column(field.name) == [getattr(item, field.name) for item in items]


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
def test_a_table_has_the_same_fields_alone_and_in_crowds(cls: type[Table]) -> None:
    chosen = list(subsets(cls))
    for names in chosen:
        for count in COUNTS if len(chosen) < 10 or len(names) in (0, 1, len(cls.fields)) else FEWER:
            check([filled(cls, names, number) for number in range(count)])
    # Several vtables in one vector: some of crowds, some of few.
    mixed = [filled(cls, chosen[number % min(len(chosen), 3)], number) for number in range(60)]
    check(mixed)
    random.Random(1).shuffle(mixed)
    check([*mixed, filled(cls, [], 0)])


UNIONS = [
    (cls, field, member)
    for cls in classes()
    for field in cls.fields
    if field.kind == "union"
    for member in field.members.values()
]


@pytest.mark.parametrize(
    ("cls", "field"), dict.fromkeys((c, f) for c, f, _ in UNIONS), ids=lambda part: getattr(part, "name", "")
)
def test_every_member_of_a_union_survives_a_crowd(cls: type[Table], field: Field) -> None:
    for member in [m for c, f, m in UNIONS if (c, f) == (cls, field)]:
        for names in ([], [f.name for f in member.fields]):
            for count in COUNTS if len(field.members) < 10 else (1, 12, 13):
                check([cls(**{field.name: filled(member, names, number, 2)}) for number in range(count)])
    # All members side by side, in tables that have nothing else.
    members = list(field.members.values())
    check([cls(**{field.name: members[number % len(members)]()}) for number in range(13 * len(members))])


def test_members_of_a_later_schema_are_noted_in_a_crowd_as_they_are_alone() -> None:
    root = holder(tables.QuantizationParameters)
    details = [tables.BlockwiseQuantization(scales=n, block_size=32) for n in range(1, 21)]
    good = encode(root(items=[tables.QuantizationParameters(details=d) for d in details]))
    single = TableDecoder(memoryview(good), "the model", []).root(root)
    # The type byte of each union lies in its own table: find the tables by walking the vector.
    words = np.frombuffer(good, "<u4")
    start = int(words[0])
    vtable = start - int(words[start // 4 :].view("<i4")[0])
    vector = start + int(np.frombuffer(good[vtable + 4 : vtable + 6], "<u2")[0])
    vector += int(words[vector // 4])
    broken = bytearray(good)
    for number in range(0, 20, 2):
        at = vector + 4 + 4 * number
        table = at + int(words[at // 4])
        own = table - int(words[table // 4 :].view("<i4")[0])
        broken[table + int(np.frombuffer(good[own + 4 + 2 * 4 : own + 6 + 2 * 4], "<u2")[0])] = 99
    first: list[str] = []
    second: list[str] = []
    expected = TableDecoder(memoryview(broken), "the model", first).root(root)
    found = decode(root, memoryview(broken), "the model", second)
    assert found.items == expected.items != single.items
    assert first == second
    assert all("member 99" in line for line in first)
    assert first


def test_every_class_of_the_schema_is_tried() -> None:
    names = {cls.__name__ for cls in classes()}
    assert {"Model", "Tensor", "QuantizationParameters", "DimensionMetadata", "AddOptions", "StableHLOCompositeOptions"} <= names
    assert len(names) > 150
    assert enums.BuiltinOperator.ADD == 0
