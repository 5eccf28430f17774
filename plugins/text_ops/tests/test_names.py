"""The same kernels under the names that TensorFlow's flex ops and tflite-support give them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.text_ops.tests import pieces
from plugins.text_ops.tests.pieces import FLAGS, OneOp, classic_model, flexbuffer, piece_model, recorded, strings

from oplet import Interpreter, MutableOpResolver
from oplet.errors import OpletError
from oplet.kernels.options import read_node_def
from oplet_text_ops import FLEX_OPS, OPS, register_ops

TEXTS = strings("Füße ABC".encode(), b"", b"\xff a", "\u212b\ufb01".encode())


def flexed(op: str, attributes: dict[str, Any], outputs: list[str]) -> OneOp:
    found = OneOp(f"Flex{op}", {}, outputs)
    found.options = flex_options(op, attributes)
    return found


def resolver() -> MutableOpResolver:
    found = MutableOpResolver()
    register_ops(found)
    return found


@pytest.mark.parametrize("op", FLEX_OPS)
def test_a_flex_op_is_the_kernel_of_its_name(op: str) -> None:
    flex, plain = resolver().find_op(f"Flex{op}", 1), resolver().find_op(op, 1)
    assert flex is not None
    assert plain is not None
    assert (flex.prepare, flex.bind, flex.invoke) == (plain.prepare, plain.bind, plain.invoke)


def test_no_flex_op_is_another_package_s() -> None:
    flex_ops = pytest.importorskip("oplet_flex_ops")
    theirs = MutableOpResolver()
    flex_ops.register_ops(theirs)
    assert not [op for op in FLEX_OPS if theirs.versions(f"Flex{op}")]


@pytest.mark.parametrize(
    ("op", "options", "outputs", "feeds"),
    [
        ("NormalizeUTF8", {"normalization_form": "NFD"}, ["object"], [TEXTS]),
        ("CaseFoldUTF8", {}, ["object"], [TEXTS]),
        ("TFText>NgramsStringJoin", {"width": 2, "axis": -1, "string_separator": "_", "RAGGED_RANK": 0}, ["object"], [TEXTS]),
        ("TFText>Utf8Binarize", {"word_length": 3, "bits_per_char": 9, "replacement_char": -5}, ["float32"], [TEXTS]),
        ("UnicodeScript", {}, ["int32"], [np.array([97, 0x3B1, -1], np.int32)]),
    ],
)
def test_attributes_of_a_node_def_are_the_options(op: str, options: dict[str, Any], outputs: list[str], feeds: list[Any]) -> None:
    for ours, wanted in zip(flexed(op, options, outputs)(*feeds), OneOp(op, options, outputs)(*feeds)):
        np.testing.assert_array_equal(ours, wanted)


def test_flag_and_list_attributes_are_read() -> None:
    points = np.array([97, 32, 98], np.int32)
    op = flexed("UnicodeScriptTokenizeWithOffsets", {"keep_whitespace": True, "Tsplits": 9}, KINDS)
    assert op(points, np.array([0, 3]))[0].tolist() == [97, 32, 98]
    for packed in (b"\x18\x01\x18\xac\x02", b"\x1a\x03\x01\xac\x02"):
        entry = b"\x0a\x01x\x12\x07\x0a\x05" + packed
        assert read_node_def(b"\x2a" + bytes([len(entry)]) + entry).attributes == {"x": [1, 300]}


KINDS = ["int32", "int64", "int64", "int64", "int64"]


def run(model: bytes, *feeds: Any) -> list[Any]:
    interpreter = Interpreter(model_content=model, op_resolver=resolver(), plugins=[])
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds):
        interpreter.resize_tensor_input(detail["index"], feed.shape)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def test_a_sentencepiece_tokenizer_of_flex_ops_is_that_of_custom_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = recorded()["bytes_proto"].tobytes()
    texts = strings(b"text and more", b"")
    feeds = [texts, np.array(0, np.int32), np.array(0, np.float32), *[np.array(False)] * 3]
    plain = classic_model("SentencepieceOp", "SentencepieceTokenizeOp", ["int32", "int64"], {}, *feeds, proto=proto)
    given = {"SentencepieceOp": {"model": proto, "container": ""}, "SentencepieceTokenizeOp": {"return_nbest": False}}

    class Flexed(pieces.ModelBuilder):
        def add_subgraph(self) -> Any:
            graph = super().add_subgraph()
            add = graph.add_operator
            graph.add_operator = lambda op, ins, outs, **_: add(  # type: ignore[method-assign]
                f"Flex{op}", ins, outs, custom=True, custom_options=flex_options(op, given[op])
            )
            return graph

    monkeypatch.setattr(pieces, "ModelBuilder", Flexed)
    model = classic_model("SentencepieceOp", "SentencepieceTokenizeOp", ["int32", "int64"], {}, *feeds)
    for ours, wanted in zip(run(model, *feeds), run(plain, *feeds)):
        assert len(wanted)
        np.testing.assert_array_equal(ours, wanted)


def test_tflite_support_s_sentencepiece_is_tensorflow_text_s() -> None:
    from oplet import Model

    root = Model.from_bytes(piece_model("plain", FLAGS["plain"])).root
    [code] = root.operator_codes or []
    code.custom_code = "TFSentencepieceTokenizeOp"
    texts = strings(b"text and more", "é".encode())
    for ours, wanted in zip(run(Model(root).to_bytes(), texts), run(piece_model("plain"), texts)):
        assert len(wanted)
        np.testing.assert_array_equal(ours, wanted)
    codes, splits = run(piece_model("plain"), texts)
    back = [OneOp(op, {}, ["object"])(recorded()["plain_decoder"], codes, splits)[0].tolist() for op in BACK]
    assert back[0] == back[1] == texts.tolist()


BACK = ("TFSentencepieceDetokenizeOp", "TFText>FastSentencepieceDetokenize")


def test_tflite_support_s_ngrams_are_tensorflow_text_s() -> None:
    options = {"width": 2, "axis": -1, "reduction_type": "STRING_JOIN", "string_separator": "-"}
    assert OneOp("tftext:Ngrams", options, ["object"])(strings(b"a", b"b", b"c"))[0].tolist() == [b"a-b", b"b-c"]
    with pytest.raises(OpletError, match="'reduction_type' is 'SUM'"):
        OneOp("tftext:Ngrams", {**options, "reduction_type": "SUM"}, ["object"])(strings(b"a"))


def test_damaged_node_defs_are_refused_or_read_otherwise() -> None:
    pick = random.Random(5)
    good = flex_options("NormalizeUTF8", {"normalization_form": "NFC", "numbers": [1, 300, -1], "more": [0.5, True, b"x"]})
    outcomes = set()
    for _ in range(400):
        data = bytearray(good)
        for _ in range(pick.randint(1, 6)):
            data[pick.randrange(len(data))] = pick.randrange(256)
        op = OneOp("FlexNormalizeUTF8", {}, ["object"])
        op.options = bytes(data[: pick.choice([len(data), pick.randrange(len(data))])])
        try:
            op(TEXTS)
            outcomes.add("runs")
        except OpletError:
            outcomes.add("refused")
    assert outcomes == {"runs", "refused"}


def test_a_map_in_place_of_a_node_def_is_refused() -> None:
    op = OneOp("FlexNormalizeUTF8", {"normalization_form": "NFD"}, ["object"])
    with pytest.raises(OpletError, match="a TensorFlow operator has its name and its NodeDef there"):
        op(TEXTS)
    assert op.options == flexbuffer({"normalization_form": "NFD"})
    assert OPS["NormalizeUTF8"]
