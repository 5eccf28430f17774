"""TensorFlow's Unicode operators, as `Flex` and their name, give what TensorFlow's give, and refuse what they refuse."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.test_strings import I32, I64, Array, S, check, ours, strings

from oplet import TensorType

PACKAGE = {"plugins": ["oplet-text-ops"]}


def _check(op: str, inputs: Sequence[Array], types: Sequence[TensorType], attributes: Mapping[str, Any]) -> None:
    check(op, inputs, types, attributes, **PACKAGE)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16-BE", "UTF-32-BE"])
@pytest.mark.parametrize("errors", ["replace", "ignore", "strict"])
def test_code_points_are_decoded_and_encoded(encoding: str, errors: str) -> None:
    choose = random.Random(3)
    valid = ["".join(chr(choose.choice([65, 0x1F, 0xE9, 0x20AC, 0x1F642, 0])) for _ in range(4)) for _ in range(20)]
    texts = [text.encode(encoding.replace("-BE", "-be").lower()) for text in valid]
    if errors != "strict":
        texts += [
            bytes(
                choose.choice([0, 0x41, 0x80, 0xC3, 0xE2, 0x82, 0xF0, 0x9F, 0xD8, 0xDC, 0xED, 0xA0, 0xFF])
                for _ in range(choose.randrange(9))
            )
            for _ in range(300)
        ]
    common = {"input_encoding": encoding, "errors": errors, "Tsplits": I64}
    for more in ({}, {"replacement_char": 63}, {"replace_control_characters": True}):
        for text in texts if errors == "strict" else [None]:
            given = strings(*texts) if text is None else strings(text)
            _check("UnicodeDecode", [given], [I64, I32], {**common, **more})
            _check("UnicodeDecodeWithOffsets", [given], [I64, I32, I64], {**common, **more})
            if text is not None:
                break
    for wrong in (b"\x80", b"\xd8\0", b"abc"):
        _check("UnicodeDecode", [strings(wrong)], [I64, I32], common)
    _check("UnicodeTranscode", [strings(*texts)], [S], {"input_encoding": encoding, "output_encoding": "UTF-8", "errors": errors})
    points = np.array([65, 0x1F642, 0xD800, -1, 0x110000, 0xFFFE, 0xFDD0, 0x20AC, 0], np.int32)
    for splits, chosen in (
        ([0, 2, 9], points),
        ([0, 0, 2], points[:2]),
        ([0, 5], points),
        ([1, 2], points[:2]),
        ([0, 2, 1], points[:1]),
    ):
        attributes = {"output_encoding": encoding, "errors": errors, "Tsplits": I64}
        _check("UnicodeEncode", [chosen, np.array(splits, np.int64)], [S], attributes)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16-BE", "UTF-32-BE"])
def test_offsets_are_right_at_both_ends_of_every_length_of_a_character(encoding: str) -> None:
    text = "".join(map(chr, (0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF)))
    starts = [len(text[:number].encode(encoding)) for number in range(len(text))]
    attributes = {"input_encoding": encoding, "errors": "strict", "Tsplits": I64}
    _, points, offsets = ours(
        "UnicodeDecodeWithOffsets", [strings(text.encode(encoding))], [I64, I32, I64], attributes, **PACKAGE
    )
    assert (points.tolist(), offsets.tolist()) == (list(map(ord, text)), starts)
