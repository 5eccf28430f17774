"""Record what TensorFlow Text gives for words and Unicode: `python -m plugins.text_ops.tests.record_words`.

It needs tensorflow and tensorflow-text. `words.npz.xz` has the models of the converter for some cases of `oracle`, texts and the answers for
them, and for each operator on single code points a checksum of every 4,096 code points.
"""

from __future__ import annotations

import io
import lzma
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from plugins.text_ops.tests.oracle import cases, converted, hard_texts
from plugins.text_ops.tests.pieces import packed, sentences

DATA = Path(__file__).with_name("words.npz.xz")
#: The cases whose models are recorded. Those that share a vocabulary take little more than one.
CASES = (
    "whitespace", "wordpiece_words", "bert", "bert_detokenized", "packed", "bytes", "folded", "NFKC", "decoded", "characters", "encoded",
    "transcoded", "lengths", "scripts", "split_1",
)  # fmt: skip
#: The operators on single code points.
POINTS = ("folded", "NFC", "NFD", "NFKC", "NFKD")
BLOCK = 4096


def block(number: int) -> list[bytes]:
    """The code points of a block, each as a text."""
    points = range(number * BLOCK, (number + 1) * BLOCK)
    return [chr(point).encode() for point in points if not 0xD800 <= point < 0xE000]


def checksum(texts: list[bytes]) -> int:
    """A checksum of texts and of where they end."""
    return zlib.crc32(b"".join(len(text).to_bytes(2, "little") + text for text in texts))


def main() -> None:
    """Write the record."""
    functions, pick = cases(), random.Random(0)
    texts = hard_texts(160, pick) + sentences(60, pick)
    arrays: dict[str, Any] = {}
    arrays["texts"], arrays["texts_splits"] = packed(texts)
    for name in CASES:
        model, answer = converted(functions[name])
        arrays[f"{name}_model"] = np.frombuffer(model, np.uint8)
        for key, value in answer(texts).items():
            if value.dtype == object:
                arrays[f"{name}_of_{key}"], arrays[f"{name}_of_{key}_splits"] = packed(value.ravel().tolist())
            else:
                arrays[f"{name}_of_{key}"] = value
    for name in POINTS:
        _, answer = converted(functions[name])
        sums = [checksum(answer(block(number))["texts"].tolist()) for number in range(0x110000 // BLOCK)]
        arrays[f"{name}_sums"] = np.array(sums, np.uint32)
    file = io.BytesIO()
    np.savez(file, **arrays)
    DATA.write_bytes(lzma.compress(file.getvalue(), preset=9))


if __name__ == "__main__":
    main()
