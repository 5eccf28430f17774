"""TensorFlow Text as the oracle: its functions for each case, and the models that the converter writes of them.

Everything here needs tensorflow and tensorflow-text, which are imported when a case is built.
"""

from __future__ import annotations

import collections
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plugins.text_ops.tests.pieces import random_texts, sentences, strings

from oplet import Interpreter

#: A function of TensorFlow from strings [n] to named arrays.
Function = Callable[[Any], dict[str, Any]]

SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
#: Patterns of delimiters, and of those that are kept: those of BertTokenizer among them, and some that look back.
PATTERNS = (
    (r"\s", ""),
    (r"\s+|[!-/]|[:-@]|\p{P}|[\x{4E00}-\x{9FFF}]", r"[!-/]|[:-@]|\p{P}|[\x{4E00}-\x{9FFF}]"),
    (r"^a|\bthe|o\B|[^a-z]+$", r".*"),
    (r"(?i)T(H)?|(?s:..e)", r"(?i)th|..e"),
)
#: Fragments that are at the edges of what tokenizers do: white space of all kinds, ill-formed and unknown characters beside marks.
_EDGES = [
    b" ", b"\n", b"\x1c", b"\xc2\x85", b"\xc2\xa0", b"\xe2\x80\x83", b"\xe3\x80\x80", b"\xe1\x9a\x80", b"\xe2\x80", b"\xe3", b"\xf0\x9f", b"\xff",
    b"\xed\xa0\x80", b"\xe4\xb8\xad", b"\xe4\xb8\x81", b".", b"##", b"#", b"a", b"the", b"ing", b"\0", b"\xcc\x81", b"\xc3\xa9", b"\xc7\x85",
    b"\xe1\xad\x8e", b"\xf0\x9b\xb1\xb0", b"\xef\xac\x81", b"\xc2\xad", b"\xe1\x84\x80\xe1\x85\xa1", b"\xcd\x85", b"\xf4\x90\x80\x80",
    b"\xe0\xa2\x97", b"\xf0\x90\x97\x92\xcc\x87", b"I\xcc\x87", b"\xc4\xb0", b"x" * 101,
]  # fmt: skip


def hard_texts(count: int, pick: random.Random) -> list[bytes]:
    """Random texts and bytes, of which every fourth is put together of edges."""
    texts = random_texts(count, pick)
    texts[::4] = [b"".join(pick.choices(_EDGES, k=pick.randint(0, 14))) for _ in texts[::4]]
    return texts


def vocabulary() -> list[str]:
    """A small vocabulary of WordPiece: words and their parts from recorded sentences of many languages."""
    words = collections.Counter(word for text in sentences(200, random.Random(0)) for word in text.decode().lower().split())
    letters = sorted({letter for word in words for letter in word if letter.isalpha()})[:150]
    common = [word for word, _ in words.most_common(150)]
    parts = [f"##{part}" for part in (*letters, "ing", "ed", "s", "er", "\u4e2d")]
    return list(dict.fromkeys([*SPECIAL, *common, *letters, *parts, ".", ",", "'", "\u4e2d", "x", "##x"]))


def cases() -> dict[str, Function]:
    """The functions by name."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    pytest.importorskip("tensorflow", reason="pip install tensorflow-text to compare with its own kernels")
    text = pytest.importorskip("tensorflow_text", reason="pip install tensorflow-text to compare with its own kernels")
    import tensorflow as tf

    words = vocabulary()
    settings: dict[str, Any] = {"token_out_type": tf.int32, "unknown_token": "[UNK]"}
    wordpiece = text.FastWordpieceTokenizer(words, **settings)
    bert = text.FastBertTokenizer(np.array(words), lower_case_nfd_strip_accents=True, support_detokenization=True, **settings)

    def pieces(tokenizer: Any) -> Function:
        return lambda x: _flat(*tokenizer.tokenize_with_offsets(x))

    def normalized(lower: bool) -> Function:
        normalizer = text.FastBertNormalizer(lower_case_nfd_strip_accents=lower)

        def run(x: Any) -> dict[str, Any]:
            made, offsets = normalizer.normalize_with_offsets(x)
            return {"texts": made, **_flat(offsets)}

        return run

    def transcoded(target: str, **options: Any) -> Function:
        return lambda x: {"texts": tf.strings.unicode_transcode(x, "UTF-8", target, **options)}

    def split(delimiter: str, kept: str) -> Function:
        def run(x: Any) -> dict[str, Any]:
            parts, starts, ends = text.regex_split_with_offsets(x, delimiter, kept)
            return _flat(parts, starts, ends)

        return run

    def packed(x: Any) -> dict[str, Any]:
        both = text.RoundRobinTrimmer(14).trim([bert.tokenize(x), bert.tokenize(x)[:, ::-1]])
        tokens, types = text.combine_segments(both, start_of_sequence_id=1, end_of_segment_id=2)
        ids, mask = text.pad_model_inputs(tokens, 16)
        return {"ids": ids, "mask": mask, "types": text.pad_model_inputs(types, 16)[0]}

    return {
        "whitespace": pieces(text.WhitespaceTokenizer()),
        "wordpiece": pieces(wordpiece),
        "wordpiece_words": pieces(text.FastWordpieceTokenizer(words, no_pretokenization=True, **settings)),
        "wordpiece_suffix": pieces(
            text.FastWordpieceTokenizer(list(dict.fromkeys([*words, "yx", "y", "ye"])), suffix_indicator="y", **settings)
        ),
        "wordpiece_spaces": pieces(text.FastWordpieceTokenizer(list(dict.fromkeys([*words, "a b", "##x y", " "])), **settings)),
        "bert": pieces(bert),
        "bert_cased": pieces(text.FastBertTokenizer(np.array(words), lower_case_nfd_strip_accents=False, **settings)),
        "bert_detokenized": lambda x: {"texts": bert.detokenize(bert.tokenize(x))},
        "packed": packed,
        **{f"split_{number}": split(*patterns) for number, patterns in enumerate(PATTERNS)},
        "normalized": normalized(True),
        "normalized_cased": normalized(False),
        "bytes": lambda x: _flat(*text.ByteSplitter().split_with_offsets(x)),
        "folded": lambda x: {"texts": text.case_fold_utf8(x)},
        **{
            form: lambda x, form=form: {"texts": text.normalize_utf8(x, form)}  # type: ignore[misc] # bound in the loop
            for form in ("NFC", "NFD", "NFKC", "NFKD")
        },
        "decoded": lambda x: _flat(*tf.strings.unicode_decode_with_offsets(x, "UTF-8")),
        "characters": pieces(text.UnicodeCharTokenizer()),
        "encoded": lambda x: {"texts": tf.strings.unicode_encode(tf.strings.unicode_decode(x, "ISO-8859-1"), "UTF-16-BE")},
        "transcoded": transcoded("UTF-16-BE", errors="replace", replacement_char=65, replace_control_characters=True),
        "coerced": transcoded("UTF-8", errors="ignore"),
        "lengths": lambda x: {"bytes": tf.strings.length(x), "characters": tf.strings.length(x, unit="UTF8_CHAR")},
        "scripts": lambda x: {"scripts": tf.strings.unicode_script(tf.strings.unicode_decode(x, "UTF-8").flat_values)},
    }


def _flat(first: Any, *others: Any) -> dict[str, Any]:
    """Ragged tensors of the same rows as named arrays."""
    return {"values": first.flat_values, "splits": first.row_splits} | {
        f"other_{i}": each.flat_values for i, each in enumerate(others)
    }


def converted(function: Function) -> tuple[bytes, Callable[[Sequence[bytes]], dict[str, NDArray[Any]]]]:
    """The model that the converter writes of a function, and TensorFlow's own answers."""
    import tensorflow as tf

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
        def f(self, texts: Any) -> Any:
            return function(texts)

    module = Module()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module)
    converter.allow_custom_ops = True

    def answer(texts: Sequence[bytes]) -> dict[str, NDArray[Any]]:
        return {name: value.numpy() for name, value in module.f(tf.constant(strings(*texts))).items()}

    return converter.convert(), answer


def skip_without_re2(name: str) -> None:
    """Skip a case that splits by regular expressions where RE2 is not installed."""
    if name.startswith("split"):
        pytest.importorskip("re2", reason="pip install google-re2 to split by regular expressions")


def run(model: bytes) -> Callable[[Sequence[bytes]], dict[str, NDArray[Any]]]:
    """The answers of oplet for texts."""
    runner = Interpreter(model_content=model).get_signature_runner()
    return lambda texts: runner(texts=strings(*texts))


def differences(ours: dict[str, NDArray[Any]], theirs: dict[str, NDArray[Any]]) -> list[str]:
    """The names of the arrays that differ in shape or in any value."""
    assert ours.keys() == theirs.keys()
    return [name for name, our in ours.items() if our.shape != theirs[name].shape or not (our == theirs[name]).all()]
