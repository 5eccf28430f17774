"""Hostile nodes: an operator with any attributes and any inputs, made from a number."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry

from oplet_flex_delegate.values import OPAQUE_TYPES, STRING_TYPE, TYPES

__all__ = ["Case", "make_case"]

_ALL = sorted(set(TYPES.values()))
_EDGES = [0, 1, -1, 2, 7, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63)]
_SIZES = [0, 1, 1, 2, 2, 3, 4]
_WORDS = [b"", b"a", b"word", b"7", b"-3.5", b"\xff\xfe", b"a b,c", b"%d", "é世".encode(), b"[", b"(a*)*b", b"x" * 300]


class Case(NamedTuple):
    """A node and what it is fed with.

    Attributes:
        definition: its NodeDef.
        signature: the types of its inputs and outputs.
        inputs: arrays, or functions that make TensorFlow's own objects.
    """

    definition: Any
    signature: tuple[tuple[int, ...], tuple[int, ...]]
    inputs: list[Any]


def make_case(op: str, seed: int) -> Case:
    """The node of an operator that belongs to a number."""
    return _Maker(op, random.Random(f"{op} {seed}")).case()


class _Maker:
    def __init__(self, op: str, chance: random.Random) -> None:
        self.op = op
        self.chance = chance
        self.described = op_def_registry.get(op)
        self.numbers = np.random.default_rng(chance.getrandbits(32))
        rank = chance.choice([0, 1, 1, 2, 2, 3, 4, 4, 5])
        self.base = [chance.choice(_SIZES) for _ in range(rank)]
        self.gentle = chance.random() < 0.6

    def case(self) -> Case:
        definition = tf.compat.v1.NodeDef(name=self.op, op=self.op)
        kernel = self.chance.choice(
            [each for each in kernels.get_registered_kernels_for_op(self.op).kernel if each.device_type in ("CPU", "DEFAULT")]
        )
        allowed = {each.name: list(each.allowed_values.list.type) for each in kernel.constraint}
        for attribute in self.described.attr:
            if attribute.HasField("default_value") and self.chance.random() < 0.5:
                definition.attr[attribute.name].CopyFrom(attribute.default_value)
            else:
                self.fill(definition.attr[attribute.name], attribute, allowed.get(attribute.name))
        types = list(self.spread(definition, self.described.input_arg))
        reads = tuple(type for type, _ in types)
        writes = tuple(type for type, _ in self.spread(definition, self.described.output_arg))
        return Case(definition, (reads, writes), [self.value(type, name) for type, name in types])

    def spread(self, definition: Any, arguments: Any) -> Iterator[tuple[int, str]]:
        for each in arguments:
            if each.type_list_attr:
                yield from ((type, each.name) for type in definition.attr[each.type_list_attr].list.type)
                continue
            type = each.type or definition.attr[each.type_attr].type
            count = definition.attr[each.number_attr].i if each.number_attr else 1
            yield from [(type, each.name)] * max(0, min(count, 6))

    # Attributes ----------------------------------------------------------------------------------------------

    def fill(self, value: Any, attribute: Any, types: list[int] | None) -> None:
        kind = attribute.type
        choices = attribute.allowed_values.list
        if kind == "type":
            if attribute.name in ("element_dtype", "dtype") and 1 in (types or _ALL) and self.chance.random() < 0.6:
                value.type = 1  # as the lists and variables are that it is given
                return
            value.type = self.chance.choice([t for t in types or choices.type or _ALL if t in _ALL] or [1])
        elif kind == "list(type)":
            value.list.type.extend(self.chance.choice(choices.type or types or _ALL) for _ in range(self.chance.randint(0, 4)))
        elif kind == "int":
            is_count = any(attribute.name == each.number_attr for each in (*self.described.input_arg, *self.described.output_arg))
            value.i = self.chance.randint(0, 4) if is_count else self.whole(attribute)
        elif kind == "list(int)":
            if self.gentle and attribute.name in ("strides", "ksize", "dilations", "rates", "ksizes"):
                rank = 5 if "3D" in self.op else 4
                value.list.i.extend([1, *(self.chance.choice([1, 1, 2]) for _ in range(rank - 2)), 1])
                return
            count = self.chance.choice([0, 1, 2, 2, 3, 4, 4, 4, 5, 5, 6])
            value.list.i.extend(self.whole(attribute) for _ in range(count))
        elif kind == "float":
            value.f = self.real()
        elif kind == "list(float)":
            value.list.f.extend(self.real() for _ in range(self.chance.randint(0, 6)))
        elif kind == "bool":
            value.b = self.chance.random() < 0.5
        elif kind == "list(bool)":
            value.list.b.extend(self.chance.random() < 0.5 for _ in range(self.chance.randint(0, 4)))
        elif kind == "string":
            value.s = self.chance.choice(list(choices.s) or [attribute.default_value.s, *_WORDS])
        elif kind == "list(string)":
            given = list(choices.s) or _WORDS
            if attribute.name == "row_partition_types":
                given = [b"ROW_SPLITS", b"FIRST_DIM_SIZE", b"VALUE_ROWIDS", b"x"]
            value.list.s.extend(self.chance.choice(given) for _ in range(self.chance.randint(0, 4)))
        elif kind == "shape":
            self.shape(value.shape)
        elif kind == "list(shape)":
            for _ in range(self.chance.randint(0, 3)):
                self.shape(value.list.shape.add())
        elif kind == "tensor":
            self.constant(value.tensor)

    def whole(self, attribute: Any) -> int:
        least = attribute.minimum if attribute.has_minimum else -1
        if self.gentle or self.chance.random() < 0.7:
            return max(least, self.chance.choice([-1, 0, 1, 1, 1, 2, 2, 3, 4]))
        return self.chance.choice(_EDGES)

    def real(self) -> float:
        return self.chance.choice([0.0, 0.5, 1.0, -1.0, 1e-30, 3.4e38, float("nan"), float("inf"), -float("inf"), 2.0, 16000.0])

    def shape(self, value: Any) -> None:
        if self.chance.random() < 0.2:
            value.unknown_rank = True
            return
        sizes = (
            self.base if self.chance.random() < 0.5 else [self.chance.choice(_SIZES) for _ in range(self.chance.randint(0, 5))]
        )
        for size in sizes:
            wild = not self.gentle and self.chance.random() < 0.2
            value.dim.add(size=self.chance.choice([-1, 2**31, 2**62, -5]) if wild else size)

    def constant(self, value: Any) -> None:
        value.dtype = self.chance.choice(_ALL)
        self.shape(value.tensor_shape)
        value.tensor_content = self.numbers.bytes(self.chance.choice([0, 4, 16, 64]))
        if self.chance.random() < 0.5:
            value.float_val.extend([1.0] * self.chance.randint(0, 3))

    # Inputs --------------------------------------------------------------------------------------------------

    def value(self, type: int, name: str) -> Any:
        if type in OPAQUE_TYPES:
            return self.opaque(type)
        shape = self.sizes(name)
        if type == STRING_TYPE:
            found = np.empty(shape, object)
            found[...] = b""
            for place in np.ndindex(*shape):
                found[place] = self.text(name)
            return found
        return self.array(tf.as_dtype(type).as_numpy_dtype, shape, name)

    def sizes(self, name: str) -> list[int]:
        chance = self.chance.random()
        rank = len(self.base)
        if any(word in name for word in ("contents", "image")) and chance < 0.6:
            return [] if name == "contents" else [self.chance.choice(_SIZES) for _ in range(self.chance.choice([3, 4]))]
        shaped = ("shape", "size", "dims", "begin", "end", "strides", "multiples", "paddings", "crops")
        if chance < 0.7 and any(word in name for word in shaped):
            return [rank, 2] if name in ("paddings", "crops") else [self.chance.choice([rank, 2, 2, 4])]
        if name.endswith("indices") and chance < 0.4:
            return [self.chance.choice(_SIZES), max(rank, 1)]
        if chance < 0.5:
            return list(self.base)
        if chance < 0.62:
            return []
        if chance < 0.78:
            return [self.chance.choice([self.base[0] if rank else 1, *_SIZES])]
        if chance < 0.9:
            return [*self.base[: max(rank - 1, 0)], self.chance.choice(_SIZES)]
        return [self.chance.choice(_SIZES) for _ in range(self.chance.randint(0, 6))]

    def array(self, dtype: Any, shape: Sequence[int], name: str) -> Any:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.numbers.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            if "splits" in name and len(shape) == 1 and self.gentle:
                return np.sort(self.numbers.integers(0, 5, shape)).astype(dtype) - 0
            styles: list[Callable[[], Any]] = [
                lambda: self.numbers.integers(0, 3, shape),
                lambda: self.numbers.integers(1, 4, shape),
                lambda: np.arange(int(np.prod(shape))).reshape(shape),
                lambda: self.numbers.integers(-3, 7, shape),
                lambda: np.full(shape, self.chance.choice(_EDGES)),
                lambda: self.numbers.choice(_EDGES, shape),
            ]
            style = self.chance.choice(styles[:3] if self.gentle else styles)
            with np.errstate(all="ignore"):
                return np.asarray(style(), np.int64).astype(dtype)
        numbers = (
            self.numbers.normal(size=shape) if self.chance.random() < 0.6 else self.numbers.integers(0, 4, shape).astype(float)
        )
        if not self.gentle and self.chance.random() < 0.4:
            numbers = self.numbers.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, 1e-38, 1e300], shape)
        with np.errstate(all="ignore"):
            return np.asarray(numbers).astype(dtype)

    def text(self, name: str) -> bytes:
        if name in ("contents", "input", "image_buffer", "input_bytes") and self.chance.random() < 0.7:
            whole = bytearray(self.chance.choice(_files()))
            for _ in range(self.chance.choice([0, 1, 2, 6])):
                whole[self.chance.randrange(len(whole))] = self.chance.choice([0, 1, 127, 128, 255, self.chance.getrandbits(8)])
            return bytes(whole)
        return self.chance.choice(_WORDS)

    def opaque(self, type: int) -> Any:
        names = list(_VARIANTS if type == TYPES_VARIANT else _RESOURCES)
        fitting = [name for name in names if name[:4] in self.op or (name == "variable" and "Resource" in self.op)]
        name = self.chance.choice(fitting if fitting and self.chance.random() < 0.7 else names)
        return (_VARIANTS if type == TYPES_VARIANT else _RESOURCES)[name]


TYPES_VARIANT = 21
_raw = tf.raw_ops


def _list(*elements: Any, dtype: Any = tf.float32) -> Any:
    made = _raw.TensorListReserve(element_shape=tf.constant(-1), num_elements=len(elements) + 1, element_dtype=dtype)
    for place, each in enumerate(elements):
        made = _raw.TensorListSetItem(input_handle=made, index=place, item=tf.constant(each, dtype))
    return made


def _variable(value: Any) -> Any:
    handle = _raw.VarHandleOp(dtype=value.dtype, shape=value.shape, shared_name=f"v{id(value)}")
    _raw.AssignVariableOp(resource=handle, value=value)
    return handle


def _table() -> Any:
    handle = _raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="table")
    _raw.LookupTableImportV2(table_handle=handle, keys=tf.constant(["a", "word"]), values=tf.constant([1, 2], tf.int64))
    return handle


def _mutable() -> Any:
    handle = _raw.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.float32, shared_name="mutable")
    _raw.LookupTableInsertV2(table_handle=handle, keys=tf.constant([1, 2], tf.int64), values=tf.constant([1.0, 2.0]))
    return handle


def _map() -> Any:
    return _raw.TensorMapInsert(input_handle=_raw.EmptyTensorMap(), key=tf.constant(1), value=tf.constant([1.0, 2.0]))


_VARIANTS: dict[str, Callable[[], Any]] = {
    "TensorListEmpty": lambda: _raw.EmptyTensorList(element_shape=tf.constant(-1), max_num_elements=4, element_dtype=tf.float32),
    "TensorListVectors": lambda: _list([1.0, 2.0], [3.0, 4.0]),
    "TensorListScalars": lambda: _list(1.0, 2.0, 3.0),
    "TensorListStrings": lambda: _list(b"a", b"b", dtype=tf.string),
    "TensorListWhole": lambda: _raw.TensorListFromTensor(tensor=tf.ones([3, 2]), element_shape=tf.constant([2])),
    "TensorListMany": lambda: tf.stack([_list(1.0), _list(2.0, 3.0)]),
    "TensorMap": _map,
    "RaggedVariant": lambda: _raw.RaggedTensorToVariant(rt_nested_splits=[tf.constant([0, 1, 3])], rt_dense_values=tf.ones([3]), batched_input=True),
    "RaggedScalar": lambda: _raw.RaggedTensorToVariant(rt_nested_splits=[tf.constant([0, 1, 3])], rt_dense_values=tf.ones([3]), batched_input=False),
    "OptionalValue": lambda: _raw.OptionalFromValue(components=[tf.constant(1.0)]),
    "OptionalNone": lambda: _raw.OptionalNone(),
    "Empty": lambda: _raw.Empty(shape=[0], dtype=tf.variant),
    "Unset": lambda: _raw.Empty(shape=[], dtype=tf.variant),
    "UnsetMany": lambda: _raw.Empty(shape=[2], dtype=tf.variant),
}  # fmt: skip
_RESOURCES: dict[str, Callable[[], Any]] = {
    "variable": lambda: _variable(tf.ones([3])),
    "variableMatrix": lambda: _variable(tf.ones([4, 3])),
    "variableWhole": lambda: _variable(tf.constant([[1, 2], [3, 4]], tf.int64)),
    "variableGenerator": lambda: _variable(tf.constant([1, 2, 3], tf.int64)),
    "variableText": lambda: _variable(tf.constant(["a"])),
    "unset": lambda: _raw.VarHandleOp(dtype=tf.float32, shape=[3], shared_name="unset"),
    "LookupTable": _table,
    "LookupTableMutable": _mutable,
    "LookupTableUnset": lambda: _raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="other"),
    "Empty": lambda: _raw.Empty(shape=[], dtype=tf.resource, init=True),
}


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\x00abcdef" * 2)) + chunk(b"IEND", b"")


_FILES: list[bytes] = []


def _files() -> list[bytes]:
    """A small picture or sound of each format."""
    if not _FILES:
        picture = tf.constant(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
        bmp = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 66, 0, 0, 54, 40, 2, 2, 1, 24, 0, 12, 0, 0, 0, 0) + bytes(16)
        gif = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x10\x20\x30\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
        sound = tf.audio.encode_wav(tf.ones([8, 2]) * 0.5, 8000).numpy()
        _FILES.extend([_png(), tf.io.encode_png(picture).numpy(), tf.io.encode_jpeg(picture).numpy(), bmp, gif, sound])
    return _FILES
