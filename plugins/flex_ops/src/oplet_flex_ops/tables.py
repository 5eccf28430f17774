"""TensorFlow lookup tables: key-value maps that the interpreter keeps and nodes share by name.

A table is what a RESOURCE tensor holds. Numerics and refusals: tensorflow/core/kernels/lookup_table_op.{h,cc} and
lookup_table_init_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Array
from oplet.kernels.limits import Kept, listed, paced
from oplet_flex_ops.attributes import Attributes

__all__ = ["Table", "find_or_make", "gives_handle", "read_table", "table_types"]

#: Bytes of an entry besides its key and value, of a string besides its characters, of a number and of an array besides its elements.
_ENTRY, _STRING, _NUMBER, _ARRAY = 96, 33, 32, 112
#: Bytes of scratch for an entry while it is written, and of a table without entries.
_SCRATCH, _TABLE = 200, 1200
#: Entries between two looks at the clock.
_PART = 4096
#: Types that keys and values may have.
_NO_VALUES = (TensorType.RESOURCE, TensorType.VARIANT)


class Table:
    """A lookup table from keys to values.

    Attributes:
        key_type: the type of the keys.
        value_type: the type of the values.
        value_shape: the shape of each value.
        is_static: whether the table is filled once, and then only read.
        refused: keys that cannot be inserted or looked up, with their names: "empty_key", "deleted_key". Only dense tables, whose
            methods take keys as one vector, have them.
        entries: the values (scalars, or arrays of shape `value_shape`) by key; None while a static table is not filled.
    """

    def __init__(
        self,
        key_type: TensorType,
        value_type: TensorType,
        value_shape: tuple[int, ...] = (),
        *,
        is_static: bool = False,
        refused: dict[Any, str] | None = None,
    ) -> None:
        self.key_type, self.value_type, self.value_shape = key_type, value_type, value_shape
        self.is_static = is_static
        self.refused = {} if refused is None else refused
        self.entries: dict[Any, Any] | None = None if is_static else {}
        self._kept = Kept(_TABLE)

    @property
    def size(self) -> int:
        """The number of keys."""
        return len(self.entries or ())

    def filled(self) -> dict[Any, Any]:
        """Return the entries; raise if the table was never filled.

        Raises:
            EnsureError: the table is static and was not filled yet.
        """
        if self.entries is None:
            ensure(False, "the table was not filled yet: nothing was imported into it.")
            return {}  # not reached: `ensure` has raised
        return self.entries

    def insert(self, keys: Array, values: Array) -> None:
        """Set the values of keys; of equal keys the last one wins.

        Raises:
            EnsureError: the table is static, or a key is one of `refused`.
            LimitError: the table takes more memory than is allowed.
        """
        ensure(not self.is_static, "the table can only be filled once, by an import; insert into a mutable table.")
        entries, pairs = self.filled(), self._pairs(keys, values)
        found = dict(paced(pairs, _PART))
        gone = sum(_ENTRY + _nbytes(key) + _nbytes(entries[key]) for key in paced(found, _PART) if key in entries)
        self._kept.add(_all_nbytes(found) - gone)
        entries.update(found)

    def replace(self, keys: Array, values: Array) -> None:
        """Replace all entries. A static table may be filled again only with the same entries.

        Raises:
            EnsureError: the table refuses a key; or it is static, and was filled with other entries before or gets two values for
                a key.
            LimitError: the table takes more memory than is allowed.
        """
        pairs = self._pairs(keys, values)
        found = dict(paced(pairs, _PART))
        if self.is_static:
            ensure(
                all(_same(found[key], value) for key, value in paced(pairs)), "the table has different values for the same key."
            )
            ensure(
                self.entries is None
                or (self.entries.keys() == found.keys() and all(_same(self.entries[key], found[key]) for key in paced(found))),
                "the table was already filled, with other entries.",
            )
        kept = Kept(_TABLE + _all_nbytes(found))
        self.entries, self._kept = found, kept

    def remove(self, keys: Array) -> None:
        """Remove keys; unknown ones are skipped.

        Raises:
            EnsureError: the table is static, or a key is one of `refused`.
        """
        ensure(not self.is_static, "nothing can be removed from a table that is filled once.")
        entries = self.filled()
        for key in paced(self._checked_keys(keys), _PART):
            if key in entries:
                self._kept.add(-(_ENTRY + _nbytes(key) + _nbytes(entries.pop(key))))

    def find(self, keys: Array, default: Array, target: Array) -> None:
        """Write the keys' values to `target`; `default` has one value, or one per key.

        Raises:
            EnsureError: a key is one of `refused`, or the table was not filled yet.
        """
        entries, items = self.filled(), self._checked_keys(keys)
        if self.value_shape:
            rows = target.reshape(len(items), *self.value_shape)
            missing = np.broadcast_to(default, target.shape).reshape(rows.shape)
            for row, (key, other) in enumerate(paced(zip(items, missing))):
                value = entries.get(key)
                rows[row] = other if value is None else value
            return
        flat, others = target.reshape(-1), default.reshape(-1)
        for first in paced(range(0, len(items), _PART), 1):
            part = slice(first, first + _PART)
            usual = [default.item()] * _PART if default.size == 1 else others[part].tolist()
            flat[part] = list(map(entries.get, items[part], usual))

    def _pairs(self, keys: Array, values: Array) -> list[tuple[Any, Any]]:
        charge(_SCRATCH * keys.size + (_ARRAY * keys.size + values.nbytes if self.value_shape else 0))
        items = self._checked_keys(keys)
        if not self.value_shape:
            return list(zip(items, listed(values)))
        rows = values.reshape(len(items), *self.value_shape)
        return [(key, np.array(row)) for key, row in paced(zip(items, rows))]

    def _checked_keys(self, keys: Array) -> list[Any]:
        items = listed(keys)
        if self.refused:
            ensure(keys.ndim <= 1, lambda: f"keys of shape {list(keys.shape)} are given; a dense table takes a vector of keys.")
            if wrong := self.refused.keys() & set(items):
                key = wrong.pop()
                ensure(False, f"{key!r:.60} is the {self.refused[key]} of the table, and no key that it can hold.")
        return items


def _all_nbytes(entries: dict[Any, Any]) -> int:
    return sum(_ENTRY + _nbytes(key) + _nbytes(value) for key, value in paced(entries.items(), _PART))


def _nbytes(value: Any) -> int:
    if isinstance(value, bytes):
        return _STRING + len(value)
    return _ARRAY + int(value.nbytes) if isinstance(value, np.ndarray) else _NUMBER


def _same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b))


def table_types(attributes: Attributes) -> tuple[TensorType, TensorType]:
    """Return the key and value types that a node's attributes name."""
    types = attributes.type("key_dtype"), attributes.type("value_dtype")
    for name, type in zip(("key_dtype", "value_dtype"), types):
        if type in _NO_VALUES:
            ensure(False, f"the attribute '{name}' of {attributes.op} is {type.name}, which no table holds.")
    return types


def find_or_make(context: Context, node: Node, attributes: Attributes, make: Callable[[], Table]) -> Table:
    """Return the lookup table that a node names; create it by `make` at first use.

    Nodes of one `container` and `shared_name` share a table, in all subgraphs of the interpreter; a node without a name has one
    of its own.

    Raises:
        EnsureError: the table of that name has keys or values of other types.
    """
    name = attributes.text("shared_name", default="")
    if not name and attributes.flag("use_node_name_sharing", default=False):
        name = attributes.node_def.name
    key: Any = ("oplet_flex_ops", "table", attributes.text("container", default=""), name) if name else node
    made = make()
    found = context.resources.setdefault(key, made)
    if not isinstance(found, Table):
        ensure(False, f"the resource '{name}' is no table.")
        return made
    same = all(getattr(found, each) == getattr(made, each) for each in ("key_type", "value_type", "value_shape", "is_static"))
    ensure(
        same, lambda: f"the table '{name}' maps {found.key_type.name} to {found.value_type.name}; the node asks for another one."
    )
    return found


def gives_handle(context: Context, output: Tensor) -> None:
    """Check in `prepare` that the output is a RESOURCE tensor, and give it the shape of one table handle."""
    ensure_type(output, TensorType.RESOURCE)
    context.resize_tensor(output, ())


def read_table(node: Node, keys: TensorType | None = None, values: TensorType | None = None) -> Table:
    """Return the table that the first input holds.

    Args:
        keys: the type that the keys must have; None for any.
        values: the type that the values must have; None for any.

    Raises:
        EnsureError: the input holds no table, or one of other types.
    """
    tensor = node.inputs[0]
    found = tensor.data.reshape(-1)[0] if tensor.size == 1 else None
    if not isinstance(found, Table):
        ensure(False, f"{tensor} holds no table.")
        raise TypeError  # not reached: `ensure` has raised
    for what, given, wanted in (("keys", keys, found.key_type), ("values", values, found.value_type)):
        if given is not None and given is not wanted:
            ensure(False, f"the table has {what} of type {wanted.name}, the node {given.name}.")
    return found
