"""Vectors of tables stored as columns, one for each field; the tables themselves are created on demand.

A model has a table for each of its thousands of tensors and nodes. Running it needs a few of their fields, once. Reading columns takes
a fraction of the time that creating the tables takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Generic, TypeVar, overload

import numpy as np

from oplet.schema.table import Table

__all__ = ["Columns", "LazyTables", "Vectors", "as_lazy_tables"]

T = TypeVar("T", bound=Table)
#: Average length up to which gathering the values of vectors is faster than creating a view of each.
_SHORT = 16
Numbers = np.ndarray[Any, Any]


class Vectors:
    """A column of vectors of numbers: slices of one array.

    Attributes:
        array: the array; of bytes where its dtype is not `dtype`.
        starts: the index in `array` at which each vector starts.
        stops: the index at which each one stops.
        dtype: the dtype of the values.
    """

    __slots__ = ("_views", "array", "dtype", "starts", "stops")

    def __init__(self, array: Numbers, starts: Numbers, stops: Numbers, dtype: np.dtype[Any]) -> None:
        self.array = array
        self.starts = starts
        self.stops = stops
        self.dtype = dtype
        self._views: list[Numbers] | None = None

    @property
    def lengths(self) -> Numbers:
        """The number of values of each vector."""
        return (self.stops - self.starts) // (self.dtype.itemsize // self.array.itemsize)

    def views(self) -> list[Numbers]:
        """Return all vectors as views of the file, without copies."""
        if self._views is None:
            array, places = self.array, zip(self.starts.tolist(), self.stops.tolist())
            if array.dtype == self.dtype:
                self._views = [array[start:stop] for start, stop in places]
            else:
                self._views = [array[start:stop].view(self.dtype) for start, stop in places]
        return self._views

    def view(self, index: int) -> Numbers:
        """Return one vector as a view of the file, without a copy."""
        return self.array[self.starts[index] : self.stops[index]].view(self.dtype)

    def joined(self) -> Numbers:
        """Concatenate the values of all vectors."""
        if self.array.dtype != self.dtype:
            return np.concatenate(self.views())
        lengths = self.stops - self.starts
        ends = lengths.cumsum()
        if int(ends[-1]) > _SHORT * len(ends):
            return np.concatenate(self.views())
        at = (self.stops - ends).repeat(lengths.astype(np.intp, copy=False))  # 32 bits wide in a browser
        at += np.arange(len(at))
        found: Numbers = self.array.take(at)
        return found

    def tuples(self) -> list[tuple[Any, ...]]:
        """Return the vectors as tuples of Python numbers."""
        values = tuple(self.joined().tolist())
        ends = self.lengths.cumsum().tolist()
        return [values[start:end] for start, end in zip([0, *ends], ends)]


class Columns(Generic[T]):
    """Tables that share a vtable, stored as one column for each of its fields.

    Attributes:
        cls: the tables' class.
        positions: the index of each table in the vector that it is part of.
        values: the columns by field: Vectors, LazyTables, or a sequence of values. Absent fields have no column.
    """

    __slots__ = ("cls", "positions", "values")

    def __init__(self, cls: type[T], positions: Numbers, values: dict[str, Any]) -> None:
        self.cls = cls
        self.positions = positions
        self.values = values

    def __len__(self) -> int:
        return len(self.positions)

    def column(self, name: str) -> Iterable[Any]:
        """Return the values of a field, vectors as tuples; for an absent field an endless repetition of its default."""
        found = self.values.get(name)
        if found is None:
            return repeat(getattr(self.cls, name))
        return found.tuples() if isinstance(found, Vectors) else found

    def views(self, name: str) -> Iterable[Numbers | None]:
        """Return the vectors of a field as views of the file; for an absent field an endless repetition of None."""
        found = self.values.get(name)
        return repeat(None) if found is None else found.views()

    def integers(self, name: str) -> Numbers:
        """Return the values of an integer field as an int64 array."""
        found = self.values.get(name)
        if found is None:
            return np.full(len(self.positions), getattr(self.cls, name), np.int64)
        return np.array(found, np.int64)

    def tables(self) -> list[T]:
        """Create all tables."""
        made = list(map(self.cls.__new__, repeat(self.cls, len(self.positions))))
        for name, column in self.values.items():
            values = column.views() if isinstance(column, Vectors) else column
            deque(map(setattr, made, repeat(name), values), 0)
        return made

    def table_at(self, index: int) -> T:
        """Create the table at an index of the columns."""
        made = self.cls.__new__(self.cls)
        for name, column in self.values.items():
            setattr(made, name, column.view(index) if isinstance(column, Vectors) else column[index])
        return made


class LazyTables(Sequence[T]):
    """A vector of tables whose tables are created when they are first used, and kept until `release`.

    Attributes:
        groups: the tables that were decoded in batches, as columns.
        singles: all other tables, each with its index in the vector.
    """

    __slots__ = ("_columns", "_count", "_fields", "_places", "_tables", "groups", "singles")

    def __init__(self, count: int, groups: list[Columns[T]], singles: list[tuple[int, T]]) -> None:
        self.groups = groups
        self.singles = singles
        self._count = count
        self._columns: dict[str, list[Any]] = {}
        self._fields: set[str] | None = None
        self._tables: list[T] | None = None
        self._places: dict[int, tuple[Columns[T] | None, int]] | None = None  # (None, i) stands for singles[i]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return iter(self.tables())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self.tables()[index]

    def tables(self) -> list[T]:
        """Return all tables; each is created once."""
        made = self._tables  # another thread may call `release` at any time
        if made is None:
            if not self.singles and len(self.groups) == 1:
                made = self.groups[0].tables()
            else:
                made = [None] * self._count  # type: ignore[list-item]
                for number, table in self.singles:
                    made[number] = table
                for group in self.groups:
                    for number, table in zip(group.positions.tolist(), group.tables()):
                        made[number] = table
            self._tables = made
        return made

    def table_at(self, index: int) -> T:
        """Return the table at an index, without creating the others."""
        made, places = self._tables, self._places
        if made is not None:
            return made[index]
        if places is None:
            places = {n: (group, at) for group in self.groups for at, n in enumerate(group.positions.tolist())}
            places.update((n, (None, at)) for at, (n, _) in enumerate(self.singles))
            self._places = places
        group, at = places[index]
        return self.singles[at][1] if group is None else group.table_at(at)

    def has_field(self, name: str) -> bool:
        """Return whether any table sets this field."""
        if self._fields is None:
            self._fields = set().union(*(group.values for group in self.groups), *(table.__dict__ for _, table in self.singles))
        return name in self._fields

    def with_fields(self, *names: str) -> Iterator[tuple[int, T]]:
        """Yield the tables that set at least one of these fields, each with its index."""
        for number, table in self.singles:
            if not table.__dict__.keys().isdisjoint(names):
                yield number, table
        for group in self.groups:
            if not group.values.keys().isdisjoint(names):
                yield from zip(group.positions.tolist(), group.tables())

    def column(self, name: str) -> list[Any]:
        """Return the values of a field for all tables in order: vectors as tuples, absent fields as their default or as an empty
        tuple.
        """
        result = self._columns.get(name)
        if result is None:
            vectors = [(g.positions, found) for g in self.groups if isinstance(found := g.values.get(name), Vectors)]
            if vectors:
                result = self._vectors(vectors)
            else:
                result = [None] * self._count
                for group in self.groups:
                    for number, value in zip(group.positions.tolist(), group.column(name)):
                        result[number] = value
            for number, table in self.singles:
                value = getattr(table, name)
                result[number] = tuple(value.tolist()) if isinstance(value, np.ndarray) else value
            self._columns[name] = result
        return result

    def _vectors(self, found: list[tuple[Numbers, Vectors]]) -> list[Any]:
        """Merge the vectors of several groups into one column in order; tables of other groups have empty ones."""
        starts, stops = np.zeros((2, self._count), np.int64)
        for numbers, vectors in found:
            starts[numbers], stops[numbers] = vectors.starts, vectors.stops
        return Vectors(vectors.array, starts, stops, vectors.dtype).tuples()

    def release(self) -> None:
        """Drop the tables and values that were created from the columns."""
        self._columns.clear()
        self._tables = self._places = None


def as_lazy_tables(tables: Sequence[T] | None) -> LazyTables[T]:
    """Return the tables as `LazyTables`; a plain sequence is wrapped."""
    if isinstance(tables, LazyTables):
        return tables
    given = tables or []
    return LazyTables(len(given), [], list(enumerate(given)))
