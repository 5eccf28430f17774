"""Writes `oplet_text_ops/tables/code_points.npz`: what TensorFlow Text's ICU says of code points and no Python says alike.

Run it by hand after TensorFlow Text has moved to a newer ICU: `python record_code_points.py python3.10`, with tensorflow-text, with an
`unicodedata2` of that ICU's Unicode, and with the oldest Python that is supported as its argument: what is newer than that one's Unicode
stands in the table. The scripts are those of TensorFlow's own ICU, as TensorFlow has UnicodeScript; beside them are those that TensorFlow Text
parts words by, of its newer ICU, under numbers of their own: the operator tells only which are the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import oplet_text_ops

TARGET = Path(oplet_text_ops.__file__).parent / "tables" / "code_points.npz"
#: What a Python knows of each code point: whether it is assigned, and what NFKC with folded case makes of it.
ASK = """
import json, unicodedata
form = unicodedata.normalize
points = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
assigned = [unicodedata.category(point) != "Cn" for point in points]
print(json.dumps([assigned, [form("NFKC", form("NFKC", form("NFD", point).casefold()).casefold()) for point in points]]))
"""
ALL = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]


def ranges(points: Sequence[int]) -> np.ndarray:
    """First and last of each run, [runs, 2]."""
    found = np.array(sorted(points))
    breaks = np.flatnonzero(np.diff(found) > 1)
    return np.stack([found[np.concatenate([[0], breaks + 1])], found[np.concatenate([breaks, [-1]])]], axis=1).astype(np.int32)


def scripts_of_words(older: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where scripts begin as UnicodeScriptTokenizeWithOffsets sees them, and a number for each.

    Args:
        older: the script of each code point, by TensorFlow's own ICU, which has those of white space.
    """
    from tensorflow_text.python.ops import unicode_script_tokenizer

    from oplet_text_ops.texts.code_points import WHITE_SPACES

    parted = unicode_script_tokenizer.gen_unicode_script_tokenizer.unicode_script_tokenize_with_offsets

    def words(points: np.ndarray, splits: np.ndarray) -> list[np.ndarray]:
        return [each.numpy() for each in parted(input_values=points, input_splits=splits, keep_whitespace=True)]

    starts = words(np.arange(0x110000, dtype=np.int32), np.array([0, 0x110000]))[2]
    spaces = {ord(each.decode()) for each in WHITE_SPACES}
    numbers = np.full(len(starts), -1)
    for number, start in enumerate(starts.tolist()):
        if numbers[number] < 0 and start not in spaces:
            pairs = np.stack([np.full(len(starts), start), starts], axis=1).astype(np.int32).reshape(-1)
            outer = words(pairs, np.arange(0, len(pairs) + 1, 2))[4]
            numbers[np.diff(outer) == 1] = number
    for number, start in enumerate(starts.tolist()):
        if start in spaces:  # parted from all else for being white space
            numbers[number] = next(n for n, s in zip(numbers, starts) if n >= 0 and older[s] == older[start] and s not in spaces)
    return starts, np.unique(numbers, return_inverse=True)[1]


def main() -> None:
    import tensorflow as tf
    import tensorflow_text as text
    import unicodedata2 as newer

    answer = subprocess.run([sys.argv[1], "-c", ASK], stdout=subprocess.PIPE, check=True).stdout
    known, plain_folds = json.loads(answer)
    encoded = np.array([chr(point).encode() for point in ALL], object)
    scripts = tf.strings.unicode_script(np.arange(0x110000, dtype=np.int32)).numpy()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(scripts)) + 1])
    tokenizer = text.FastWordpieceTokenizer(["[UNK]", "x", "##x"], token_out_type=tf.int32)
    pieces = tokenizer.tokenize(np.array([b"y" + each + b"y" for each in encoded], object)).row_lengths().numpy()
    folded = text.case_fold_utf8(encoded).numpy()
    for form in ("NFD", "NFKD", "NFC", "NFKC"):
        theirs = text.normalize_utf8(encoded, form).numpy()
        wrong = [point for point, each in zip(ALL, theirs) if newer.normalize(form, chr(point)).encode() != each]
        if wrong:
            raise SystemExit(f"unicodedata2 has Unicode {newer.unidata_version}, which is not that of TensorFlow Text's ICU.")
    new = [p for p, old in zip(ALL, known) if newer.category(chr(p)) != "Cn" and not old]
    classes = [(p, newer.combining(chr(p))) for p in new if newer.combining(chr(p))]
    decomposed = [(p, newer.normalize(form, chr(p)), form == "NFKD") for form in ("NFD", "NFKD") for p in new]
    decomposed = [each for each in decomposed if each[1] != chr(each[0])]
    pairs = []
    for point in new:
        parts = newer.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (int(part, 16) for part in parts)
            if newer.normalize("NFC", chr(first) + chr(second)) == chr(point):
                pairs.append((first, second, point))
    dropped = [point for point, each in zip(ALL, folded) if not each]
    keep = set(dropped)

    folds = [(p, each.decode()) for p, each, plain in zip(ALL, folded, plain_folds) if p not in keep and plain.encode() != each]
    word_starts, word_scripts = scripts_of_words(scripts)
    np.savez_compressed(
        TARGET,
        word_script_starts=word_starts.astype(np.int32),
        word_scripts=word_scripts.astype(np.int16),
        script_starts=starts.astype(np.int32),
        scripts=scripts[starts].astype(np.int16),
        punctuation=ranges([point for point, count in zip(ALL, pieces) if count == 3]),
        assigned=ranges([point for point in ALL if newer.category(chr(point)) != "Cn"]),
        dropped=ranges(dropped),
        classes=np.array(classes, np.int32),
        pairs=np.array(pairs, np.int32),
        decomposed=np.array([point for point, _, _ in decomposed], np.int32),
        compatibility=np.array([compatible for _, _, compatible in decomposed], bool),
        parts="\n".join(parts for _, parts, _ in decomposed),
        folded=np.array([point for point, _ in folds], np.int32),
        folds="\n".join(each for _, each in folds),
    )
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes, Unicode {newer.unidata_version}")


if __name__ == "__main__":
    main()
