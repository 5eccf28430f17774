"""Reader of FlexBuffers, the schemaless format in which converters write the options of custom ops and of composites.

Format: the FlexBuffers page of google/flatbuffers. Every access stays inside the bytes. The work is bounded by their number, also where
the parts of a damaged or hostile buffer refer to one another.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from oplet.errors import CustomOptionsError

__all__ = ["flexbuffer_map", "read_flexbuffer"]

#: Levels of nesting; far more than any converter writes.
_DEEPEST: Final = 32
#: Values and characters per byte of the buffer; above 1 because keys and strings may be shared.
_SHARED: Final = 64
#: Values in total, each of which becomes a Python object; far more than any converter writes.
_MOST: Final = 1 << 20

_INTEGERS: Final = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}
_UNSIGNED: Final = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}
_FLOATS: Final = {2: "<e", 4: "<f", 8: "<d"}

_NULL, _INT, _UINT, _FLOAT, _KEY, _STRING = range(6)
_INDIRECT_INT, _INDIRECT_FLOAT, _MAP, _VECTOR = 6, 8, 9, 10
_TYPED_FIRST, _TYPED_LAST, _FIXED_FIRST, _FIXED_LAST = 11, 15, 16, 24
_BLOB, _BOOL, _VECTOR_BOOL = 25, 26, 36


def read_flexbuffer(data: bytes, *, text: bool = True) -> Any:
    """Decode a FlexBuffer to None, bool, int, float, str, bytes, or lists and dictionaries (with str keys) of them.

    Args:
        data: the FlexBuffer.
        text: whether strings are UTF-8 and become str; otherwise they stay bytes. Keys of maps are text always.

    Raises:
        ValueError: the bytes are not a FlexBuffer; the message names the position and ends without a full stop.
    """
    if len(data) < 3:
        raise ValueError(f"{len(data)} bytes are too few for any value")
    width, kind = data[-1], data[-2]
    if width not in _UNSIGNED:
        raise ValueError(f"the last byte says that the value is {width} bytes wide")
    reader = _Reader(data, text)
    return reader.value(len(data) - 2 - width, width, kind, 0)


class _Reader:
    def __init__(self, data: bytes, text: bool) -> None:
        self._data = data
        self._strings_are_text = text
        self._left = _SHARED * len(data)
        self._values = _MOST

    def value(self, place: int, width: int, packed: int, depth: int) -> Any:
        """Decode the value at byte `place`, of the type in the byte `packed`, as element of a vector with `width` bytes each."""
        self._spend(1)
        self._values -= 1
        if self._values < 0:
            raise ValueError(f"it has more than {_MOST:,} values")
        kind, own = packed >> 2, 1 << (packed & 3)
        if kind == _NULL:
            return None
        if kind in (_INT, _UINT, _FLOAT, _BOOL):
            return self._number(place, width, kind)
        target = place - self._number(place, width, _UINT)
        if kind == _KEY:
            return self._key(target)
        if kind in (_STRING, _BLOB):
            size = self._number(target - own, own, _UINT)
            text = self._bytes(target, size)
            return self._text(text, target) if kind == _STRING and self._strings_are_text else text
        if _INDIRECT_INT <= kind <= _INDIRECT_FLOAT:
            return self._number(target, own, kind - _INDIRECT_INT + _INT)
        if depth >= _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} values lie in each other")
        if kind == _MAP:
            return self._map(target, own, depth)
        if kind == _VECTOR:
            return self._vector(target, own, depth)
        return self._typed(target, own, kind)

    def _map(self, target: int, width: int, depth: int) -> dict[str, Any]:
        offset = target - 3 * width
        keys = offset - self._number(offset, width, _UINT)
        key_width = self._number(target - 2 * width, width, _UINT)
        if key_width not in _UNSIGNED:
            raise ValueError(f"the keys of the map at byte {target} are {key_width} bytes wide")
        values = self._vector(target, width, depth)
        if (count := self._number(keys - key_width, key_width, _UINT)) != len(values):
            raise ValueError(f"the map at byte {target} has {count} keys and {len(values)} values")
        names = (self._key(place - self._number(place, key_width, _UINT)) for place in self._places(keys, count, key_width))
        return dict(zip(names, values))

    def _vector(self, target: int, width: int, depth: int) -> list[Any]:
        count = self._number(target - width, width, _UINT)
        places = self._places(target, count, width)
        kinds = self._bytes(target + count * width, count)
        return [self.value(place, width, kind, depth + 1) for place, kind in zip(places, kinds)]

    def _typed(self, target: int, width: int, kind: int) -> list[Any]:
        if _FIXED_FIRST <= kind <= _FIXED_LAST:
            more, element = divmod(kind - _FIXED_FIRST, 3)
            count, element = more + 2, element + _INT
        elif _TYPED_FIRST <= kind <= _TYPED_LAST or kind == _VECTOR_BOOL:
            count = self._number(target - width, width, _UINT)
            element = _BOOL if kind == _VECTOR_BOOL else kind - _TYPED_FIRST + _INT
        else:
            raise ValueError(f"there is no type of number {kind}")
        packed = element << 2
        return [self.value(place, width, packed, 0) for place in self._places(target, count, width)]

    def _places(self, start: int, count: int, width: int) -> range:
        if start < 0 or start + count * width > len(self._data):
            raise ValueError(f"a vector of {count} values of {width} bytes at byte {start} leads outside")
        return range(start, start + count * width, width)

    def _number(self, place: int, width: int, kind: int) -> Any:
        if place < 0 or place + width > len(self._data):
            raise ValueError(f"{width} bytes at byte {place} lie outside")
        form = (_FLOATS if kind == _FLOAT else _INTEGERS if kind == _INT else _UNSIGNED).get(width)
        if form is None:
            raise ValueError(f"no number is {width} bytes wide")
        (number,) = struct.unpack_from(form, self._data, place)
        return bool(number) if kind == _BOOL else number

    def _bytes(self, place: int, size: int) -> bytes:
        if place < 0 or place + size > len(self._data):
            raise ValueError(f"{size} bytes at byte {place} lead outside")
        self._spend(size)
        return self._data[place : place + size]

    def _key(self, place: int) -> str:
        end = self._data.find(0, place) if place >= 0 else -1
        if end < 0:
            raise ValueError(f"the key at byte {place} has no end")
        return self._text(self._bytes(place, end - place), place)

    def _text(self, text: bytes, place: int) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise ValueError(f"the text at byte {place} is not UTF-8") from None

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise ValueError("its parts refer to one another without end")


def flexbuffer_map(data: bytes, what: str, verb: str) -> dict[str, Any]:
    """Decode FlexBuffers bytes that hold a map; {} if there are no bytes.

    Args:
        data: the bytes.
        what: the bytes' name in messages.
        verb: the verb that follows the name in messages, such as "hold".

    Raises:
        CustomOptionsError: the bytes are no FlexBuffer, or hold no map.
    """
    if not data:
        return {}
    try:
        value = read_flexbuffer(data)
    except ValueError as error:
        raise CustomOptionsError(f"the {len(data)} bytes of {what} are not a FlexBuffer ({error}).") from error
    if not isinstance(value, dict):
        raise CustomOptionsError(f"the {what} {verb} a {type(value).__name__}, not a map.")
    return value
