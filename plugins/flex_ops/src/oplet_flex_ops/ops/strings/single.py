"""Operators on single strings: StringLower, StringUpper, StringStrip, StringLength, EncodeBase64, DecodeBase64.

Case in UTF-8 follows Unicode's full mappings without a language, up to the first NUL, where TensorFlow's string ends; bytes that are no
UTF-8 become U+FFFD.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

from oplet import TensorType, ensure
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.texts.elementwise import elementwise

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
