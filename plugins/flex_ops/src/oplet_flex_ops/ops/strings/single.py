"""Operators on single strings. StringLower, StringUpper, StringStrip, StringLength, EncodeBase64, DecodeBase64.

Case in UTF-8 follows Unicode's full mappings without a language, up to the first NUL, where TensorFlow's string ends; bytes that are no
UTF-8 become U+FFFD.

StringToHashBucketFast, StringToHashBucketStrong and StringToHashBucket: hash strings to 0 .. `num_buckets` - 1.

The first hashes with FarmHash, the second with SipHash and a key, the third, which is older, with MurmurHash.

StringToNumber: parse strings as numbers; a string without a number, or with one out of range, is an error.

AsString: numbers, Booleans and strings as text, as C's printf writes them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.limits import listed
from oplet.kernels.strings import make_strings
from oplet_flex_ops.attributes import Attributes, checked_attributes
from oplet_flex_ops.texts.elementwise import elementwise, put_strings
from oplet_flex_ops.texts.fingerprints import farm_fingerprint, murmur_hash, sip_hash
from oplet_flex_ops.texts.numbers import PrintFormat, read_float, read_integer

#: Bytes of UTF-8 that begin no character.
_TRAILING = bytes(range(0x80, 0xC0))
_SPACE = b" \t\n\v\f\r"
_BASE64 = re.compile(rb"[A-Za-z0-9_-]*={0,2}")


def lower(attributes: Attributes) -> Callable[[bytes], bytes]:
    if attributes.text("encoding", "", "utf-8", default=""):
        return lambda string: _text(string).lower().encode()
    return bytes.lower


def upper(attributes: Attributes) -> Callable[[bytes], bytes]:
    if attributes.text("encoding", "", "utf-8", default=""):
        return lambda string: _text(string).upper().encode()
    return bytes.upper


def _text(string: bytes) -> str:
    return string.partition(b"\0")[0].decode("utf-8", "replace")


def strip(attributes: Attributes) -> Callable[[bytes], bytes]:
    return lambda string: string.strip(_SPACE)


def length(attributes: Attributes) -> Callable[[bytes], int]:
    if attributes.text("unit", "BYTE", "UTF8_CHAR", default="BYTE") == "UTF8_CHAR":
        return lambda string: len(string.translate(None, _TRAILING))
    return len


def encode_base64(attributes: Attributes) -> Callable[[bytes], bytes]:
    """Return a function that encodes bytes to URL-safe base64 ("-" and "_")."""
    if attributes.flag("pad", default=False):
        return base64.urlsafe_b64encode
    return lambda string: base64.urlsafe_b64encode(string).rstrip(b"=")


def decode_base64(attributes: Attributes) -> Callable[[bytes], bytes]:
    """Return a function that decodes URL-safe base64; the padding may be missing."""

    def decode(string: bytes) -> bytes:
        if _BASE64.fullmatch(string):
            bare = string.rstrip(b"=")
            padding = b"=" * (-len(bare) % 4)
            if len(bare) % 4 != 1 and len(string) - len(bare) in (0, len(padding)):
                try:
                    return base64.urlsafe_b64decode(bare + padding)
                except binascii.Error:
                    pass
        ensure(False, f"{string!r:.80} is no Base64 for URLs, which has letters, digits, '-' and '_'.")
        return b""

    return decode


#: A letter of two bytes may become three letters of six, and a byte that is no UTF-8 a character of three; a `str` has up to four bytes a character.
STRINGLOWER = elementwise(lower, growth=3, scratch=8)
STRINGUPPER = elementwise(upper, growth=3, scratch=8)
STRINGSTRIP = elementwise(strip)
STRINGLENGTH = elementwise(length, TensorType.INT32)
ENCODEBASE64 = elementwise(encode_base64, growth=2, scratch=4)
DECODEBASE64 = elementwise(decode_base64, scratch=2)


def fast(attributes: Attributes) -> Callable[[bytes], int]:
    buckets = attributes.integer("num_buckets", least=1)
    return lambda string: farm_fingerprint(string) % buckets


def strong(attributes: Attributes) -> Callable[[bytes], int]:
    buckets, key = attributes.integer("num_buckets", least=1), attributes.integers("key")
    ensure(len(key) == 2, lambda: f"the attribute 'key' of {attributes.op} has {len(key)} numbers; a key has two.")
    return lambda string: sip_hash((key[0], key[1]), string) % buckets


def older(attributes: Attributes) -> Callable[[bytes], int]:
    buckets = attributes.integer("num_buckets", least=1)
    return lambda string: murmur_hash(string) % buckets


STRINGTOHASHBUCKETFAST = elementwise(fast, TensorType.INT64)
STRINGTOHASHBUCKETSTRONG = elementwise(strong, TensorType.INT64)
STRINGTOHASHBUCKET = elementwise(older, TensorType.INT64)


_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT64, TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64,
)  # fmt: skip


def number(attributes: Attributes) -> Callable[[bytes], float]:
    type = attributes.type("out_type", *_TYPES, default=TensorType.FLOAT32)
    if type in (TensorType.FLOAT32, TensorType.FLOAT64):
        single = type is TensorType.FLOAT32

        def read(string: bytes) -> float | None:
            return read_float(string, single=single)
    else:
        bounds = np.iinfo(type.name.lower())

        def read(string: bytes) -> float | None:
            return read_integer(string, int(bounds.min), int(bounds.max))

    def convert(string: bytes) -> float:
        value = read(string)
        ensure(value is not None, lambda: f"{string!r:.80} holds no number of type {type.name}.")
        return cast(float, value)

    return convert


STRINGTONUMBER = elementwise(number, *_TYPES)


_FLOATS = (TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.BFLOAT16)
_COMPLEX = (TensorType.COMPLEX64, TensorType.COMPLEX128)
_SIGNED = (TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)
_UNSIGNED = (TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64)
_OTHERS = (TensorType.BOOL, TensorType.STRING)
#: The widest fields and the most digits; the largest number of type FLOAT64 has 309 digits before its point.
_WIDEST, _NUMBER = 1 << 20, 320


def prepare_text(context: Context, node: Node) -> None:
    """Check an AsString node, and parse its format attributes."""
    attributes = checked_attributes(node, 1)
    values, output = node.inputs[0], node.outputs[0]
    ensure_type(values, *_FLOATS, *_COMPLEX, *_SIGNED, *_UNSIGNED, *_OTHERS)
    attributes.ensure_type("T", values)
    ensure_type(output, TensorType.STRING)
    node.prepared = _writer(attributes, values.type)
    context.resize_tensor(output, values.shape)


def _writer(attributes: Attributes, type: TensorType) -> tuple[Callable[[Any], bytes], int]:
    """Return the function that formats one value, and the most bytes that it writes for a number."""
    precision = attributes.integer("precision", least=-1, most=_WIDEST, default=-1)
    width = attributes.integer("width", least=-1, most=_WIDEST, default=-1)
    scientific, shortest = attributes.flag("scientific", default=False), attributes.flag("shortest", default=False)
    flag = attributes.text("fill", "", " ", "-", "0", "+", "#", default="")
    most = 2 * (max(width, 0) + max(precision, 0) + _NUMBER)
    ensure(not (scientific and shortest), "numbers are written either scientifically or in the shortest way, not both.")
    if type in (*_FLOATS, *_COMPLEX):
        conversion = "e" if scientific else "g" if shortest else "f"
        part = PrintFormat(flag, width, precision, conversion)
        if type in _COMPLEX:
            return lambda value: b"(" + part(value.real) + b"," + part(value.imag) + b")", most
        return part, most
    if type is not TensorType.STRING:
        ensure(not scientific and not shortest, f"values of type {type.name} have no scientific and no shortest form.")
        ensure(precision < 0, f"values of type {type.name} have no precision.")
    if type is TensorType.BOOL:
        return lambda value: b"true" if value else b"false", most
    if type is TensorType.STRING and width < 0:
        return bytes, most
    return PrintFormat(flag, width, precision, "s" if type is TensorType.STRING else "u" if type in _UNSIGNED else "d"), most


def bind_text(context: Context, node: Node) -> Thunk:
    source, target = node.inputs[0].data, node.outputs[0].data
    write: Callable[[Any], bytes] = node.prepared[0]
    most: int = node.prepared[1]

    def size(value: Any) -> int:
        return most + len(value) if isinstance(value, bytes) else most

    def run() -> None:
        items: Any = source.reshape(-1) if source.dtype.hasobject else listed(source)
        put_strings(target, make_strings(write, items, size))

    return run


ASSTRING = Registration(prepare=prepare_text, bind=bind_text, pure=True)
