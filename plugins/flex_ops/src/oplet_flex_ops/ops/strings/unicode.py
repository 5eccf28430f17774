"""UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode and UnicodeTranscode: strings in UTF-8, UTF-16, UTF-32, Latin-1 or ASCII.

What is no character is an error, left out or replaced, as the attribute `errors` says ("strict", "ignore", "replace"); the
longest valid beginning of a broken character is replaced by one character, as in ICU.
"""

from __future__ import annotations

import codecs
import re
from array import array
from typing import NamedTuple

import numpy as np

from oplet import Context, Node, Registration, TensorType, decline, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_vector
from oplet.kernels.strings import STRING, StringMeter, make_strings
from oplet_flex_ops.attributes import Attributes, checked_attributes
from oplet_flex_ops.texts.elementwise import checked, put_strings

_CODECS = {
    "utf8": "utf-8", "utf16be": "utf-16-be", "utf16le": "utf-16-le", "utf32be": "utf-32-be", "utf32le": "utf-32-le",
    "latin1": "latin-1", "iso88591": "latin-1", "ascii": "ascii", "usascii": "ascii",
}  # fmt: skip
#: The code point that stands for an error of n bytes while a string is decoded is this one and n: a surrogate, which no string has.
_ERROR, _LONGEST_ERROR = 0xD800, 16
#: Bytes of scratch for each byte of a string that is decoded, and for each code point that is encoded.
_SCRATCH, _NUMBERS = 80, 32
#: Characters between two looks at the clock, and the bytes that they count for.
_OFTEN, _SLOW = 0x3FFF, 1 << 20
_HANDLER = "oplet_flex_ops.unicode"
codecs.register_error(_HANDLER, lambda error: (chr(_ERROR + error.end - error.start), error.end))  # type: ignore[attr-defined]


class _Settings(NamedTuple):
    """The attributes that control error handling."""

    errors: str
    replacement: int
    controls: bool


def _settings(attributes: Attributes) -> _Settings:
    errors = attributes.text("errors", "strict", "replace", "ignore", default="replace")
    replacement = attributes.integer("replacement_char", default=0xFFFD)
    ensure(_is_character(replacement), lambda: f"the attribute 'replacement_char' is {replacement}, which is no character.")
    return _Settings(errors, replacement, attributes.flag("replace_control_characters", default=False))


def _is_character(point: int) -> bool:
    """Return whether an integer is a Unicode code point and not a surrogate."""
    return 0 <= point <= 0x10FFFF and not 0xD800 <= point < 0xE000


def _codec(attributes: Attributes, name: str) -> str:
    encoding = attributes.text(name)
    found = _CODECS.get(re.sub(r"[^a-z0-9]", "", encoding.lower()))
    if found is None:
        decline(f"the encoding {encoding!r:.40} is not one of {', '.join(_CODECS)}.")
    return found


def _width(point: int, codec: str) -> int:
    """Return the number of bytes of a code point in an encoding."""
    if codec == "utf-8":
        return 1 if point < 0x80 else 2 if point < 0x800 else 3 if point < 0x10000 else 4
    if codec.startswith("utf-16"):
        return 2 if point < 0x10000 else 4
    return 4 if codec.startswith("utf-32") else 1


def _code_points(string: bytes, codec: str, settings: _Settings, meter: StringMeter) -> tuple[list[int], list[int]]:
    """Decode a string; return its code points, and the byte offset at which each begins."""
    points, starts, at = [], [], 0
    meter.hold(_SCRATCH * len(string))
    text = string.decode(codec, _HANDLER)
    for number, point in enumerate(map(ord, text)):
        if not number & _OFTEN:
            meter.read(_SLOW)
        wrong = _ERROR < point <= _ERROR + _LONGEST_ERROR
        size = point - _ERROR if wrong else _width(point, codec)
        if wrong and settings.errors == "strict":
            ensure(False, f"{string!r:.80} is no {codec.upper()}: byte {at} begins no character.")
        if wrong or (settings.controls and point < 0x20):
            point = settings.replacement
            wrong = settings.errors == "ignore"
        if not wrong:
            points.append(point)
            starts.append(at)
        at += size
    return points, starts


def prepare_decode(context: Context, node: Node) -> None:
    """Check the node; its outputs are row splits, code points, and with offsets the byte at which each begins."""
    attributes = checked_attributes(node, 1, max(2, min(len(node.outputs), 3)))
    ensure_type(node.inputs[0], TensorType.STRING)
    attributes.type("Tsplits", TensorType.INT32, TensorType.INT64, default=TensorType.INT64)
    splits = attributes.type("Tsplits", default=TensorType.INT64)
    for output, type in zip(node.outputs, (splits, TensorType.INT32, TensorType.INT64)):
        ensure_type(output, type)
        context.set_dynamic(output)
    node.prepared = _codec(attributes, "input_encoding"), _settings(attributes)


def bind_decode(context: Context, node: Node) -> Thunk:
    codec, settings = node.prepared

    def run() -> None:
        items = node.inputs[0].data.ravel().tolist()
        meter = StringMeter()
        ends, points, starts = [0], [], []
        for item in checked(items):
            meter.add(0, 2 * len(item))
            more, at = _code_points(item, codec, settings, meter)
            meter.settle(STRING * 2 * len(item), STRING * 2 * len(more))
            points += more
            starts += at
            ends.append(len(points))
        for output, values in zip(node.outputs, (ends, points, starts)):
            context.resize_tensor(output, (len(values),))
            output.data[...] = values

    return run


def prepare_encode(context: Context, node: Node) -> None:
    """Check the node's inputs: code points and the row splits of the strings."""
    attributes = checked_attributes(node, 2)
    ensure_vector(node.inputs[0], TensorType.INT32)
    ensure_vector(node.inputs[1], attributes.type("Tsplits", TensorType.INT32, TensorType.INT64, default=TensorType.INT64))
    ensure_type(node.outputs[0], TensorType.STRING)
    attributes.text("output_encoding", "UTF-8", "UTF-16-BE", "UTF-32-BE")
    ensure(node.inputs[1].size, lambda: f"{node.inputs[1]} says where no row ends; it holds at least a 0.")
    node.prepared = _codec(attributes, "output_encoding"), _settings(attributes)
    context.resize_tensor(node.outputs[0], (node.inputs[1].size - 1,))


def bind_encode(context: Context, node: Node) -> Thunk:
    points, splits, target = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    codec, settings = node.prepared

    def run() -> None:
        ends = array("q", splits.astype(np.int64).tobytes())
        rising = bool((splits[:-1] <= splits[1:]).all())
        ensure(
            ends[0] == 0 and ends[-1] == points.size and rising,
            lambda: f"input_splits begins with {ends[0]} and ends with {ends[-1]}; it must rise from 0 to {points.size}.",
        )
        meter = StringMeter()
        meter.hold(_NUMBERS * points.size)
        good = (points >= 0) & (points <= 0x10FFFF) & ((points < 0xD800) | (points > 0xDFFF))
        values = points
        if not good.all():
            ensure(settings.errors != "strict", lambda: f"the code point {points[~good][0]} is no character.")
            if settings.errors == "ignore":
                values, ends = points[good], array("q", np.concatenate([[0], np.cumsum(good)])[splits].tobytes())
            else:
                values = np.where(good, points, settings.replacement)
        text = values.astype("<u4").tobytes().decode("utf-32-le")

        def encoded(row: int) -> bytes:
            return text[ends[row] : ends[row + 1]].encode(codec)

        put_strings(target, make_strings(encoded, range(target.size), lambda row: 4 * (ends[row + 1] - ends[row]), scratch=1))

    return run


def prepare_transcode(context: Context, node: Node) -> None:
    """Check the node's input, strings."""
    attributes = checked_attributes(node, 1)
    ensure_type(node.inputs[0], TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.STRING)
    attributes.text("output_encoding", "UTF-8", "UTF-16-BE", "UTF-32-BE")
    node.prepared = _codec(attributes, "input_encoding"), _codec(attributes, "output_encoding"), _settings(attributes)
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def bind_transcode(context: Context, node: Node) -> Thunk:
    source, target = node.inputs[0].data, node.outputs[0].data
    given, wanted, settings = node.prepared

    def run() -> None:
        items, meter = source.ravel().tolist(), StringMeter()

        def transcoded(item: bytes) -> bytes:
            return "".join(map(chr, _code_points(item, given, settings, meter)[0])).encode(wanted)

        put_strings(target, make_strings(transcoded, items, len, growth=4, meter=meter))

    return run


UNICODEDECODE = UNICODEDECODEWITHOFFSETS = Registration(prepare=prepare_decode, bind=bind_decode)
UNICODEENCODE = Registration(prepare=prepare_encode, bind=bind_encode, pure=True)
UNICODETRANSCODE = Registration(prepare=prepare_transcode, bind=bind_transcode, pure=True)
