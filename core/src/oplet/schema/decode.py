"""Decode FlatBuffers files, with the tables of a vector in batches.

Tables of a vector that share a vtable are decoded column by column, and can be kept as columns (`LazyTables`). Anything unusual or
damaged is left to the decoder of single tables (`oplet.schema.table_decoder`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import numpy as np

from oplet.schema.columns import Columns, LazyTables, Vectors, as_lazy_tables
from oplet.schema.table import Field, Table
from oplet.schema.table_decoder import SOFFSET, STRING_HEAD, UOFFSET, VTABLE_HEAD, Layout, Numbers, TableDecoder

__all__ = ["decode", "extent"]

T = TypeVar("T", bound=Table)

#: Average distance between strings, in bytes, up to which their whole range is decoded at once.
_NEAR = 2048
#: Number of different keys up to which each one is searched for; above it the keys are sorted.
_FEW_KEYS = 16
#: Numbers of tables from which a batch is faster than one at a time: of a vector in the file, and of those in a batch that share a vtable.
_MANY, _MORE = 40, 12


def decode(
    cls: type[T],
    buffer: memoryview,
    where: str = "the model",
    unknown: list[str] | None = None,
    lazy: Collection[type[Table]] = (),
) -> T:
    """Decode the root table of a FlatBuffer.

    Args:
        cls: the root table's class.
        buffer: the whole file; vectors of numbers become read-only views of it.
        where: what errors call the file.
        unknown: a list that receives descriptions of the first few fields and union members that this schema does not have.
        lazy: classes whose vectors are decoded to `LazyTables` in place of lists.

    Raises:
        ModelError: an offset, vector, string or union does not lie inside the file.
    """
    return _BatchDecoder(buffer, where, [] if unknown is None else unknown, lazy).root(cls)


def extent(cls: type[T], buffer: memoryview) -> tuple[T, int]:
    """Decode the root table of a FlatBuffer; return the table, and the position after the last byte that it uses.

    Raises:
        ModelError: an offset, vector, string or union does not lie inside the file.
    """
    decoder = _Measuring(buffer, "the model", [])
    return decoder.root(cls), decoder.end


class _BatchDecoder(TableDecoder):
    """Decoder that reads the tables of a vector which share a vtable as one batch."""

    def __init__(self, buffer: memoryview, where: str, unknown: list[str], lazy: Collection[type[Table]] = ()) -> None:
        super().__init__(buffer, where, unknown)
        self.lazy = lazy

    def tables_at(self, cls: type[Table], positions: Sequence[int]) -> Sequence[Table]:
        if len(positions) < _MANY:
            tables = super().tables_at(cls, positions)
            return as_lazy_tables(tables) if cls in self.lazy else tables
        return self.batch(cls, np.array(positions, np.int64))

    def batch(self, cls: type[Table], positions: Numbers) -> Sequence[Table]:
        found = self.lazy_tables(cls, positions)
        return found if cls in self.lazy else found.tables()

    def lazy_tables(self, cls: type[Table], positions: Numbers) -> LazyTables[Table]:
        """Decode the tables of one class at the given positions in the file; at least four bytes lie at each."""
        groups: list[Columns[Table]] = []
        count = len(positions)
        if count < _MORE or _bits(positions) & 3:
            return as_lazy_tables(super().tables_at(cls, positions.tolist()))
        singles: list[tuple[int, Table]] = []
        for vtable, numbers in _by_value(positions - self.words["i"].take(positions >> 2)):
            places = positions if len(numbers) == count else positions.take(numbers)
            columns = self.read_columns(cls, vtable, places) if len(numbers) >= _MORE else None
            if columns is None:
                singles.extend((number, self.table(cls, place)) for number, place in zip(numbers.tolist(), places.tolist()))
            else:
                groups.append(Columns(cls, numbers, columns))
        return LazyTables(count, groups, singles)

    def read_columns(self, cls: type[Table], vtable: int, positions: Numbers) -> dict[str, Any] | None:
        """Decode tables that share a vtable into columns; the positions are multiples of four. Return None if they must be
        decoded one at a time.
        """
        layout = self.layouts.get((vtable, cls)) or self.layout(cls, vtable, int(positions[0]))
        nbytes = len(positions) * max(layout.size, 4)
        if nbytes > self.tables_left:
            raise self.fail("more tables than its bytes can hold", int(positions[0]))
        columns = self.columns(cls, layout, positions)
        if columns is not None:
            self.tables_left -= nbytes
        return columns

    def columns(self, cls: type[Table], layout: Layout, positions: Numbers) -> dict[str, Any] | None:
        """Decode tables of one layout into columns, by field; None if they must be decoded one at a time."""
        length = -(-layout.size // 4)
        words = self.words["u"]
        if not layout.batch or _highest(positions) + 4 * length > 4 * words.size:
            return None
        if layout.wide_scalars and any(_bits(positions + offset) & 7 for offset in layout.wide_scalars):
            return None
        if layout.unions and not all(self.are_known_unions(field, positions, *places) for field, *places in layout.unions):
            return None
        result: dict[str, Any] = {}
        # A table whose only fields are unions has nothing to unpack here.
        rows = words.take(np.add.outer(positions >> 2, np.arange(length if layout.groups else 0)))
        if layout.groups:
            result.update(zip(layout.groups[0][1], zip(*layout.batch[0].iter_unpack(rows.tobytes()))))
        for name, members in layout.enums:
            result[name] = [members.get(number, number) for number in result[name]]
        for name, offset, dtype, shared in layout.vectors:
            vectors = self.vectors(positions + offset + rows[:, offset >> 2], dtype, shared)
            if vectors is None:
                return None
            result[name] = vectors
        for field, offset in layout.references:
            column = self.references(cls, field, positions + offset + rows[:, offset >> 2])
            if column is None:
                return None
            result[field.name] = column
        for field, offset, type_offset in layout.unions:
            result[field.name] = self.values(field, positions, offset, type_offset)
        return result

    def spans(self, targets: Numbers, itemsize: int, end: int) -> Numbers | None:
        """Return the sizes in bytes of the vectors at `targets`; None unless each, and `end` bytes behind it, lies inside the
        file.
        """
        if _bits(targets) & 3 or _highest(targets) + 4 > self.size & -4:
            return None
        nbytes: Numbers = np.multiply(self.words["u"].take(targets >> 2), itemsize, dtype=np.int64)
        return nbytes if _highest(targets + nbytes) + 4 + end <= self.size else None

    def vectors(self, targets: Numbers, dtype: np.dtype[Any], shared: bool) -> Vectors | None:
        nbytes = self.spans(targets, dtype.itemsize, 0)
        if nbytes is None or (total := int(np.add.reduce(nbytes))) > (self.shared_left if shared else self.numbers_left):
            return None
        self.spend_numbers(total, shared)
        starts = targets + 4
        stops = starts + nbytes
        if dtype.itemsize == 4:
            return Vectors(self.words[dtype.kind], starts >> 2, stops >> 2, dtype)
        return Vectors(self.array, starts, stops, dtype)

    def references(self, cls: type[Table], field: Field, targets: Numbers) -> Sequence[Any] | None:
        if field.kind == "table":
            return self.lazy_tables(field.table or Table, targets) if _highest(targets) + 4 <= self.size else None
        if field.kind == "string":
            lengths = self.spans(targets, 1, 1)
            if lengths is None or self.array.take(targets + 4 + lengths).any():
                return None
            return self.texts(targets + 4, lengths)
        if field.kind == "strings":
            return None
        return self.lists(field.table or Table, targets)

    def texts(self, starts: Numbers, lengths: Numbers) -> list[str]:
        """Decode strings that lie inside the file."""
        stops = starts + lengths
        low, high = int(np.minimum.reduce(starts)), _highest(stops)
        if high - low <= _NEAR * len(starts) and int(lengths.sum()) <= high - low:
            # Most strings are ASCII, where each byte is a character.
            near = str(self.buffer[low:high], "latin-1")
            found = [near[start:stop] for start, stop in zip((starts - low).tolist(), (stops - low).tolist())]
            if all(map(str.isascii, found)):
                self.spend_text(int(lengths.sum()) + STRING_HEAD * len(found), int(starts[0]))
                return found
        return [self.string(start, length) for start, length in zip(starts.tolist(), lengths.tolist())]

    def lists(self, cls: type[Table], targets: Numbers) -> list[Sequence[Table]] | None:
        """Decode several vectors of tables as one batch; None if they must be decoded one at a time."""
        nbytes = self.spans(targets, 4, 0)
        if nbytes is None or (total := int(np.add.reduce(nbytes))) > self.tables_left:
            return None
        self.tables_left -= total
        counts = nbytes >> 2
        ends = np.add.accumulate(counts)
        at = np.repeat(targets + 4 - 4 * (ends - counts), counts.astype(np.intp, copy=False)) + 4 * np.arange(int(ends[-1]))
        places = at + self.words["u"].take(at >> 2)
        if len(places) and _highest(places) + 4 > self.size:
            return None
        tables = self.batch(cls, places)
        return [tables[start:end] for start, end in zip((ends - counts).tolist(), ends.tolist())]

    def are_known_unions(self, field: Field, positions: Numbers, offset: int, type_offset: int) -> bool:
        """Return whether all values of a union lie inside the file and belong to members that the schema has."""
        if not offset or not type_offset or offset % 4:
            return False
        at = positions + offset
        known = field.members or {}
        return _highest(at + self.words["u"].take(at >> 2)) + 4 <= self.size and known.keys() >= set(
            self.array.take(positions + type_offset).tolist()
        )

    def values(self, field: Field, positions: Numbers, offset: int, type_offset: int) -> list[Table]:
        at = positions + offset
        targets = at + self.words["u"].take(at >> 2)
        known = field.members or {}
        result: list[Table] = [None] * len(targets)  # type: ignore[list-item]
        for member, numbers in _by_value(self.array.take(positions + type_offset)):
            for number, made in zip(numbers.tolist(), self.batch(known[member], targets.take(numbers))):
                result[number] = made
        return result


def _bits(numbers: Numbers) -> int:
    """Return the bitwise or of all the numbers."""
    return int(np.bitwise_or.reduce(numbers))


def _highest(numbers: Numbers) -> int:
    return int(np.maximum.reduce(numbers))  # twice as fast as `numbers.max()` for a few


def _by_value(keys: Numbers) -> list[tuple[int, Numbers]]:
    """Group indices by key: return the distinct keys, each with the indices at which it occurs."""
    different = set(keys.tolist())
    if len(different) > _FEW_KEYS:
        order = np.argsort(keys, kind="stable")
        found = keys[order]
        edges = np.flatnonzero(found[1:] != found[:-1]) + 1
        return [(int(keys[numbers[0]]), numbers) for numbers in np.split(order, edges)]
    if len(different) == 1:
        return [(different.pop(), np.arange(len(keys)))]
    return [(key, (keys == key).nonzero()[0]) for key in different]


class _Measuring(TableDecoder):
    """A decoder that also records the end of the last byte that is used."""

    end = 8

    def layout(self, cls: type[Table], vtable: int, position: int) -> Layout:
        layout = super().layout(cls, vtable, position)
        self.end = max(self.end, vtable + int(VTABLE_HEAD.unpack_from(self.buffer, vtable)[0]))
        return layout

    def table(self, cls: type[T], position: int) -> T:
        table = super().table(cls, position)
        vtable = position - SOFFSET.unpack_from(self.buffer, position)[0]
        layout = self.layouts[vtable, cls]
        self.end = max(self.end, position + layout.size)
        for name, offset, *_ in layout.vectors:
            self.reach(position + offset, getattr(table, name).nbytes)
        return table

    def reference(self, cls: type[Table], field: Field, at: int, target: int) -> Any:
        value = super().reference(cls, field, at, target)
        if field.kind != "table":
            length = UOFFSET.unpack_from(self.buffer, target)[0]
            self.reach(at, length + 1 if field.kind == "string" else 4 * length)
        return value

    def reach(self, at: int, nbytes: int) -> None:
        self.end = max(self.end, at + int(UOFFSET.unpack_from(self.buffer, at)[0]) + 4 + nbytes)
