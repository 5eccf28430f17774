"""Elements of a tensor as the text of a JSON list, compared with the stated shape before they are read, and read in portions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson

from oplet.errors import TensorError
from oplet_serve.values.slices import SLICE, SMALL_FIRST, occurrences, slice_starts, without

__all__ = ["JsonElements", "flattened"]

#: Bytes of text that are read at a time: a number of two bytes is an object of forty.
_PORTION = 1 << 15
_ALL = bytes(range(256))
_BUT_PUNCTUATION = _ALL.translate(None, b"[,]")
_SPACE = b" \t\r\n"
#: An element beside a list, where there must be a comma; brackets that follow one another stand between commas.
_BESIDE = re.compile(rb"\][^\],]|\[(?<=[^\[,]\[)")
_NO_ARRAY = "the elements form no array; give them flat, in row-major order."


class JsonElements:
    """The text of a JSON list that is parsed lazily.

    Attributes:
        text: the text of the list.
        plain: the same text with the bytes of its strings overwritten, so that all brackets and commas in it are syntax.
    """

    def __init__(self, text: bytes, plain: bytes) -> None:
        self.text = text
        self.plain = plain

    def portions(self, where: str, sizes: tuple[int, ...], count: int) -> Iterator[list[Any]]:
        """Check the list, flat or nested, against a shape, and yield its elements in row-major order, some at a time.

        Args:
            where: the tensor's name in messages.
            sizes: the tensor's shape.
            count: the number of elements of that shape.

        Raises:
            TensorError: the number or nesting of the elements does not match the shape, or the text is no JSON.
        """
        if b"{" in self.plain:
            raise TensorError(f"{where}: an element is a JSON object.")
        flat = self._check(where, sizes, count)
        if not (flat or count or without(self.plain, b"[,]" + _SPACE)):
            return iter(())  # lists of nothing
        return self._read(where, self._cut(flat), sizes, count)

    def _read(self, where: str, texts: Iterator[bytes], sizes: tuple[int, ...], count: int) -> Iterator[list[Any]]:
        found = 0
        for text in texts:
            elements = _parsed(where, text)
            found += len(elements)
            if found > count:
                break
            yield elements
        if found != count:
            raise TensorError(f"{where}: {found} elements were given, but the shape {list(sizes)} has {count}.")

    def _check(self, where: str, sizes: tuple[int, ...], count: int) -> bool:
        """Compare brackets and commas with the shape; return whether the list is flat."""
        signs = without(self.plain, _BUT_PUNCTUATION)
        lists, commas = occurrences(signs, b"["), occurrences(signs, b",")
        if lists == 1:
            if commas != max(count - 1, 0):
                raise TensorError(f"{where}: {commas + 1} elements were given, but the shape {list(sizes)} has {count}.")
            return True
        length = 0
        for size in reversed(sizes):
            length = 2 + size * length + max(size - 1, 0)
        if length != len(signs) or _nested(sizes) != signs:
            raise TensorError(
                f"{where}: the elements are nested in {lists} lists otherwise than the shape {list(sizes)} says; give them flat, in "
                "row-major order."
            )
        if self._is_beside():
            raise TensorError(f"{where}: {_NO_ARRAY}")
        return False

    def _is_beside(self) -> bool:
        """Return whether an element stands beside a list with no comma between them."""
        last = b""
        for start in slice_starts(len(self.plain), SLICE):
            piece = last + self.plain[start : start + SLICE].translate(None, _SPACE)
            if _BESIDE.search(piece):
                return True
            last = piece[-1:]
        return False

    def _cut(self, flat: bool) -> Iterator[bytes]:
        """Cut the text at commas into flat lists."""
        start, end = 1, len(self.text) - 1
        while start < end:
            SMALL_FIRST.give_way()
            cut = self.plain.find(b",", start + _PORTION, end)
            cut = end if cut < 0 else cut
            portion = self.text[start:cut]
            if not flat:
                signs = np.frombuffer(self.plain, np.uint8)[start:cut]
                letters = np.frombuffer(portion, np.uint8).copy()
                letters[(signs == ord("[")) | (signs == ord("]"))] = ord(" ")
                portion = letters.tobytes()
            yield b"[" + portion + b"]"
            start = cut + 1


def _nested(sizes: tuple[int, ...]) -> bytes:
    """Return the brackets and commas of nested lists; who calls it has compared their number."""
    made = b""
    for size in reversed(sizes):
        made = b"[" + ((made + b",") * (size - 1) + made if size else b"") + b"]"
    return made


def _parsed(where: str, text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise TensorError(f"{where}: an element is missing or no JSON: {error.msg}.") from None


def flattened(where: str, data: Sequence[Any], sizes: tuple[int, ...], count: int) -> Sequence[Any]:
    """Return elements, flat or nested as the shape, as a flat sequence in row-major order; lengths are checked before anything is copied.

    Args:
        where: the tensor's name in messages.
        data: the elements.
        sizes: the tensor's shape.
        count: the number of elements of that shape.

    Raises:
        TensorError: the number or nesting of the elements does not match the shape.
    """
    kinds = set(map(type, data))
    if list in kinds and len(kinds) > 1:
        raise TensorError(f"{where}: {_NO_ARRAY}")
    if list not in kinds:
        if len(data) != count:
            raise TensorError(f"{where}: {len(data)} elements were given, but the shape {list(sizes)} has {count}.")
        return data
    level: list[Any] = [list(data)]
    for size in sizes:
        if set(map(type, level)) - {list}:
            raise TensorError(f"{where}: {_NO_ARRAY}")
        if set(map(len, level)) - {size}:
            break
        level = [element for each in level for element in each]
    else:
        if list not in set(map(type, level)):
            return level
    raise TensorError(f"{where}: the elements are nested as {_nesting(data)}, but the shape is {list(sizes)}.")


def _nesting(data: Sequence[Any]) -> list[int]:
    """Return the lengths of the first list, of the first list in it, and so on."""
    found: list[int] = []
    while isinstance(data, Sequence) and not isinstance(data, (str, bytes)) and len(found) < 32:
        found.append(len(data))
        if not data:
            break
        data = data[0]
    return found
