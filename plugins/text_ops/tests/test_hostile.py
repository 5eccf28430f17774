"""Models whose tables, options, row splits or graphs are damaged run or are refused: no other exception, no hang, bounded memory."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from fuzz.byte_mutations import damage
from fuzz.choices import SeededChoices
from fuzz.mutate import mutated
from fuzz.run_model import run_model
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.text_ops.tests.pieces import classic_model, flexbuffer, piece_model, strings
from plugins.text_ops.tests.pieces import recorded as recorded_pieces
from plugins.text_ops.tests.record_words import CASES
from plugins.text_ops.tests.test_words import recorded as recorded_words
from tests.places import SWEEP

from oplet import Interpreter, Model
from oplet.schema import tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec
from oplet_text_ops import OPS

#: Ops on rows: their options, what they are fed, and their outputs. Row splits are fed, so that they are damaged as values, too.
ON_ROWS = {
    "TFText>ByteSplitByOffsets": ({}, ["object", "int32", "int32", "int64"], ["object", "int64"]),
    "TFText>NgramsStringJoin": ({"width": 2, "axis": -1, "string_separator": "_", "RAGGED_RANK": 1}, ["object", "int64"], ["object", "int64"]),
    "TFText>RoundRobinTrim": ({"N": 1, "T": 2, "Tsplits": 4}, ["int32", "int32", "int64"], ["int32", "int64"]),
    "TFText>RoundRobinGenerateMasks": ({"N": 1, "T": 2, "Tsplits": 4}, ["int32", "int32", "int64"], ["bool"]),
    "TFText>Utf8Binarize": ({"word_length": 3, "bits_per_char": 9, "replacement_char": 30}, ["object"], ["float32"]),
    "RaggedRange": ({"T": 4, "Tsplits": 4}, ["int64", "int64", "int64"], ["int64", "int64"]),
    "RaggedGather": (
        {"OUTPUT_RAGGED_RANK": 1, "PARAMS_RAGGED_RANK": 1, "Tindices": 4, "Tsplits": 4, "Tvalues": 2},
        ["int64", "int32", "int64"], ["int64", "int32"],
    ),
    "SentenceFragmentsV2": ({}, ["object"], ["int64", "int64", "int64", "object", "int64"]),
    "UnicodeEncode": ({"output_encoding": "UTF-8", "errors": "replace", "replacement_char": 65533}, ["int32", "int64"], ["object"]),
    "UnicodeScript": ({}, ["int32"], ["int32"]),
    "UnicodeScriptTokenizeWithOffsets": ({"keep_whitespace": 1}, ["int32", "int64"], ["int32", "int64", "int64", "int64", "int64"]),
    "WhitespaceTokenizeWithOffsets": ({}, ["int32", "int32"], ["int32", "int32", "int64", "int64", "int32"]),
    "tftext:Ngrams": ({"width": 2, "axis": -1, "reduction_type": "STRING_JOIN", "string_separator": "_"}, ["object"], ["object"]),
    "tftext:WhitespaceTokenizer": ({}, ["object"], ["object", "int64"]),
    "StringLength": ({"unit": "UTF8_CHAR"}, ["object"], ["int32"]),
}  # fmt: skip


@functools.cache
def seeds() -> list[tuple[str, bytes]]:
    """The recorded models of all ops, and one-op models of those that take rows."""
    found = [(name, recorded_words()[f"{name}_model"].tobytes()) for name in CASES]
    found += [
        ("preprocessing", recorded_pieces()["preprocessing"].tobytes()),
        ("pieces", piece_model("plain")),
        ("spaces", piece_model("spaces")),
    ]
    for op, (options, inputs, outputs) in ON_ROWS.items():
        specs = [Spec(type, [3], signature=[-1]) for type in inputs]
        found.append((op, one_op_model(op, specs, [Spec(type, [1]) for type in outputs], custom_options=flexbuffer(options))))
    decoder = recorded_pieces()["plain_decoder"]
    rows = [decoder, Spec("int32", [3], signature=[-1]), Spec("int64", [2], signature=[-1])]
    found.append(("back", one_op_model("TFText>FastSentencepieceDetokenize", rows, [Spec("object", [1])])))
    found.append(("back by its other name", one_op_model("TFSentencepieceDetokenizeOp", rows, [Spec("object", [1])])))
    form = flex_options("NormalizeUTF8", {"normalization_form": "NFD"})
    found.append(("flex", one_op_model("FlexNormalizeUTF8", [Spec("object", [3])], [Spec("object", [3])], custom_options=form)))
    pieces = Model.from_bytes(piece_model("plain")).root
    (pieces.operator_codes or [])[0].custom_code = "TFSentencepieceTokenizeOp"
    found.append(("pieces by their other name", Model(pieces).to_bytes()))
    proto, flags = recorded_pieces()["bytes_proto"].tobytes(), [np.array(False)] * 3
    texts = [strings(b"text", b""), np.array(0, np.int32), np.array(0, np.float32), *flags]
    codes = [np.array([3, 4], np.int32), np.array([0, 2]), *flags]
    places = ["object", "int64", "int64", "int64"]
    found += [
        ("within", recorded_pieces()["within"].tobytes()),
        ("places", classic_model("SentencepieceOp", "SentencepieceTokenizeWithOffsetsOp", places, {}, *texts, proto=proto)),
        ("together", classic_model("SentencepieceOp", "SentencepieceDetokenizeOp", ["object"], {}, *codes, proto=proto)),
        ("left out", classic_model("Placeholder", "SentencepieceTokenizeOp", ["int32", "int64"], {}, *texts)),
    ]
    return found


def with_damaged_table(data: bytes, number: int) -> bytes:
    """The model with a few changes of the bytes of one constant, which keeps its place in the graph."""
    pick, root = random.Random(number), decode(tables.Model, memoryview(data))
    full = [buffer for buffer in root.buffers or [] if buffer.data is not None and len(buffer.data) >= 8]
    if not full:
        return mutated(data, "table", number)
    buffer = pick.choice(full)
    content = bytes(buffer.data)
    for turn in range(pick.choice((1, 1, 2, 5, 40))):
        changed = damage(content, SeededChoices(f"{number} {turn}"))
        content = changed if pick.random() < 0.2 else changed[: len(content)].ljust(len(content), b"\0")
    buffer.data = np.frombuffer(content, np.uint8)
    return encode(root)


def outcomes(numbers: range) -> Iterator[tuple[str, str]]:
    """What comes of the mutants of these numbers, each with its seed."""
    for number in numbers:
        name, data = seeds()[number % len(seeds())]
        turn = number // len(seeds())
        mutant = with_damaged_table(data, turn) if turn % 2 else mutated(data, name, turn)
        outcome = run_model(mutant, SeededChoices(f"inputs of {name} {turn}"))
        yield outcome.kind, f"{name} {turn}: {outcome}"


def check(numbers: range) -> Counter[str]:
    found = list(outcomes(numbers))
    assert not [told for kind, told in found if kind not in ("ok", "refused")]
    return Counter(kind for kind, _ in found)


def test_every_op_has_a_model_that_is_damaged() -> None:
    served: set[str] = set()
    for _, data in seeds():
        served.update(each["op_name"] for each in Interpreter(model_content=data)._get_ops_details())
    assert set(OPS) <= served


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damaged_models_run_or_are_refused() -> None:
    counts = check(range(600))
    assert min(counts["ok"], counts["refused"]) > 60


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_many_damaged_models_run_or_are_refused() -> None:
    """20,000 of them with OPLET_EVERY_CASE."""
    check(range(1000, 1000 + 20_000 // SWEEP))
