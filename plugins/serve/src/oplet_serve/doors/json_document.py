"""The JSON of a large request, of which the tensors' lists are left unread: what they would take is known before it is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from oplet_serve.refusals import Refusal
from oplet_serve.values.elements import JsonElements
from oplet_serve.values.slices import SLICE, SMALL, SMALL_FIRST, cut, occurrences, slice_starts

__all__ = ["read_document"]

#: The request, its list of inputs, an input, and a list that the input has.
_LIST_DEPTH = 4
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1


def read_document(text: bytes, tensors: int) -> Any:
    """Parse the JSON of a request.

    In large requests, each input's list `data` stays text (`JsonElements`). Other values are counted before objects are made of
    them, as an empty object takes two bytes of text and a hundred of memory.

    Args:
        text: the JSON.
        tensors: the number of inputs and outputs of the model.

    Raises:
        Refusal: the text is no JSON, has more values than a request to this model can have, or an object has a key twice.
    """
    if len(text) <= SMALL:
        return _parsed(text)
    most = 4096 + 64 * tensors
    plain = _without_strings(text)
    places = _lists(plain, 64 + 4 * tensors)
    skeleton = _replaced(text, places)
    _count(_values(_replaced(plain, places)), most)
    lists = _Lists([JsonElements(cut(text, start, end), cut(plain, start, end)) for start, end in places], most)
    made = lists.put_back(_parsed(skeleton))
    if lists.left:
        raise Refusal("The request has a member twice.")
    return made


class _Lists:
    """Lists that were taken out of the text; each has left its number in a list at the same depth."""

    def __init__(self, lists: list[JsonElements], most: int) -> None:
        self.left = dict(enumerate(lists))
        self._most = most

    def put_back(self, value: Any, key: str = "", depth: int = 1) -> Any:
        """Return the value with the lists in it."""
        if isinstance(value, list):
            if depth == _LIST_DEPTH:
                return self._list(self.left.pop(value[0]), key)
            return [self.put_back(each, "", depth + 1) for each in value] if depth < _LIST_DEPTH else value
        if isinstance(value, dict) and depth < _LIST_DEPTH:
            return {name: self.put_back(each, name, depth + 1) for name, each in value.items()}
        return value

    def _list(self, elements: JsonElements, key: str) -> Any:
        if key == "data":
            return elements
        self._most -= _count(_values(elements.plain), self._most)
        return _parsed(elements.text)


def _values(plain: bytes) -> int:
    """Return an upper bound of the values in a text."""
    return 1 + occurrences(plain, b"[{,:")


def _count(values: int, most: int) -> int:
    if values > most:
        raise _too_many(f"about {values} values beside the inputs' elements", most)
    return values


def _too_many(what: str, most: int) -> Refusal:
    return Refusal(f"The request has {what}, and one to this model may have {most}; it names each input and output once.")


def _parsed(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Refusal(f"The request is no JSON: {error}.") from None


def _without_strings(text: bytes) -> bytes:
    """Return the text with every byte of its strings replaced by a quotation mark."""
    made: list[bytes] = []
    start = inside = 0
    while start < len(text):
        SMALL_FIRST.give_way()
        chunk = text[start : start + SLICE]
        if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2 and start + len(chunk) < len(text):
            chunk = chunk[:-1] or text[start : start + 2]  # a backslash stays with what it escapes
        start += len(chunk)
        chunk = chunk.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        if inside or b'"' in chunk:
            letters = np.frombuffer(chunk, np.uint8).copy()
            marks = np.cumsum(letters == ord('"'), dtype=np.uint8) + np.uint8(inside)  # whether it is odd is all that counts
            inside = int(marks[-1]) & 1
            letters[(marks & 1).astype(bool)] = ord('"')
            chunk = letters.tobytes()
        made.append(chunk)
    return b"".join(made)


def _lists(plain: bytes, most: int) -> list[tuple[int, int]]:
    """Return where the lists in the members of the inputs begin and end."""
    letters = np.frombuffer(plain, np.uint8)
    starts: list[int] = []
    ends: list[int] = []
    depth = 0
    for start in slice_starts(len(letters), SLICE):
        chunk = letters[start : start + SLICE]
        steps = _STEPS[chunk]
        at = np.flatnonzero(steps)
        if not len(at):
            continue
        steps = steps[at]
        depths = np.cumsum(steps, dtype=np.int64) + depth
        depth = int(depths[-1])
        opened, closed = at[(steps > 0) & (depths == _LIST_DEPTH)], at[(steps < 0) & (depths == _LIST_DEPTH - 1)]
        if len(starts) + len(opened) > most:
            raise _too_many(f"more than {most} lists and objects in its inputs and outputs", most)
        starts += (opened + start).tolist()
        ends += (closed + start + 1).tolist()
        if len(ends) > len(starts):
            break
    if depth or len(starts) != len(ends):
        raise Refusal("The request is no JSON: not every list, object and string in it ends once.")
    return [(start, end) for start, end in zip(starts, ends) if plain[start] == ord("[")]


def _replaced(text: bytes, places: list[tuple[int, int]]) -> bytes:
    """Replace each of the lists by one with its number."""
    parts, done = [], 0
    for number, (start, end) in enumerate(places):
        parts += [cut(text, done, start), b"[%d]" % number]
        done = end
    return b"".join([*parts, cut(text, done, len(text))])
