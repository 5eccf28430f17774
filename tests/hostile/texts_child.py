"""Run operators on strings within little memory and time, each on many references to a text, made by the model; see `test_texts.py`.

python -m tests.hostile.texts_child OP...
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.text_ops.tests.pieces import flexbuffer, recorded
from plugins.text_ops.tests.test_words import recorded as recorded_words
from tests.hostile.limited_child import LIMITS

from oplet import Interpreter, ModelBuilder, TensorType
from oplet.errors import OpletError
from oplet.schema import options as o
from oplet.schema import tables
from oplet.schema.decode import decode

__all__ = ["CASES", "NAMES", "SIZES", "TEXTS", "Case", "run_within"]

_LIMIT = LIMITS.max_arena_bytes or 0
#: Bytes of address space beside what there is after a small run, and processor time for one call, in seconds.
_SPACE, _SECONDS = 1 << 30, 2 * (LIMITS.max_seconds or 0)
#: References to a text, and its bytes.
SIZES = ((1_000_000, 1 << 10), (100_000, 1 << 16), (1_000, 1 << 16), (1, 1 << 22), (2_000_000, 8), (1_000_000, 0))
#: What texts are made of: letters, words, digits of two, a letter with marks, a character that becomes many, and bytes that are no UTF-8.
TEXTS: Mapping[str, bytes] = {
    "letters": b"abcd", "words": b"ab c", "numbers": b"1234", "marks": "a\u0301\u0323\u0301".encode(), "wide": "\ufdfa".encode(), "bytes": b"\xff\x80",
}  # fmt: skip

#: An input: an array for a constant, "many" for the references, "text" for one, or a shape and a value or "range" for numbers.
Input = Any


class Case(NamedTuple):
    """A node of an operator.

    Attributes:
        inputs: its inputs, for a number of references and a text.
        outputs: the types of its outputs.
        attributes: those of a Flex node; options of a custom one.
    """

    inputs: Callable[[int, bytes], Sequence[Input]]
    outputs: str
    attributes: Mapping[str, Any] = {}


def _scalar(value: Any, dtype: Any = np.int32) -> np.ndarray:
    return np.array(value, dtype)


def _string(value: bytes) -> np.ndarray:
    found = np.empty((), object)
    found[()] = value
    return found


def _constant(model: str, op: str, position: int) -> np.ndarray:
    """A constant of a recorded model: the table of an operator."""
    root: Any = decode(tables.Model, memoryview(recorded_words()[f"{model}_model"].tobytes()))
    for graph in root.subgraphs:
        for node in graph.operators:
            if root.operator_codes[node.opcode_index].custom_code == op:
                tensor = graph.tensors[node.inputs[position]]
                return np.frombuffer(bytes(root.buffers[tensor.buffer].data), np.uint8)
    raise LookupError(op)


_INT32, _INT64, _STRING = TensorType.INT32, TensorType.INT64, TensorType.STRING
_MANY = ["many"]
_GRAM = {
    "separator": b"--",
    "ngram_widths": [2, 3],
    "left_pad": b"<",
    "right_pad": b">",
    "pad_width": 2,
    "preserve_short_sequences": True,
}


def _each(attributes: Mapping[str, Any] = {}) -> Case:
    return Case(lambda count, text: _MANY, "STRING", attributes)


def _rows(count: int) -> list[Input]:
    """Row splits: a row for each value."""
    return [("range", count + 1)]


#: The cases of each operator that makes strings.
CASES: dict[str, list[Case]] = {
    "FlexStringLower": [_each(), _each({"encoding": "utf-8"})],
    "FlexStringUpper": [_each(), _each({"encoding": "utf-8"})],
    "FlexStringStrip": [_each()],
    "FlexEncodeBase64": [_each(), _each({"pad": True})],
    "FlexDecodeBase64": [_each()],
    "FlexAsString": [
        _each({"T": _STRING, "width": 5}), Case(lambda count, text: [((count,), _scalar(7))], "STRING", {"T": _INT32, "width": 1000}),
    ],
    "FlexSubstr": [
        Case(lambda count, text: ["many", _scalar(min(1, len(text))), _scalar(-1)], "STRING", {"T": _INT32}),
        Case(lambda count, text: ["text", ((count,), _scalar(0)), ((count,), _scalar(1 << 30))], "STRING", {"T": _INT32, "unit": "UTF8_CHAR"}),
    ],
    "FlexStringJoin": [
        Case(lambda count, text: ["many", "text"], "STRING", {"N": 2, "separator": b","}),
        Case(lambda count, text: ["many"] * 200, "STRING", {"N": 200}),
    ],
    "FlexReduceJoin": [Case(lambda count, text: ["many", _scalar([0])], "STRING", {"separator": b", "})],
    "FlexUnsortedSegmentJoin": [
        Case(lambda count, text: ["many", ("range", count), _scalar(count)], "STRING", {"Tindices": _INT64, "Tnumsegments": _INT32}),
        Case(lambda count, text: ["many", ((count,), _scalar(0)), _scalar(1)], "STRING", {"Tindices": _INT32, "Tnumsegments": _INT32}),
    ],
    "FlexRegexReplace": [
        Case(lambda count, text: ["many", _string(b"[ab]"), _string(b"\\0\\0\\0")], "STRING"),
        Case(lambda count, text: ["many", _string(b"\\z"), _string(b"-" * 1000)], "STRING", {"replace_global": False}),
    ],
    "FlexStaticRegexReplace": [_each({"pattern": b"[ab]", "rewrite": b"." * 1000}), _each({"pattern": b"^.", "rewrite": b""})],
    "FlexStringSplit": [Case(lambda count, text, sep=sep: ["many", _string(sep)], "INT64 STRING INT64") for sep in (b"", b" b")],
    "FlexStringSplitV2": [Case(lambda count, text, sep=sep: ["many", _string(sep)], "INT64 STRING INT64") for sep in (b"", b"b")],
    "FlexStringNGrams": [
        Case(lambda count, text: ["many", *_rows(count)], "STRING INT64", _GRAM),
        Case(lambda count, text: ["many", _scalar([0, count], np.int64)], "STRING INT64", {**_GRAM, "ngram_widths": [1000], "pad_width": -1}),
        Case(lambda count, text: ["many", *_rows(count)], "STRING INT64", {**_GRAM, "ngram_widths": [1 << 30], "pad_width": 1 << 30}),
        Case(
            lambda count, text: ["many", *_rows(count)],
            "STRING INT64",
            {**_GRAM, "ngram_widths": [1 << 30], "pad_width": -1, "left_pad": b"", "right_pad": b"", "separator": b""},
        ),
    ],
    "FlexUnicodeEncode": [
        Case(lambda count, text, point=point: [((count,), _scalar(point)), *_rows(count)], "STRING", {"output_encoding": "UTF-8", "errors": "replace"})
        for point in (0x1F600, -1)
    ],
    "FlexUnicodeTranscode": [
        _each({"input_encoding": "UTF-8", "output_encoding": "UTF-32-BE"}), _each({"input_encoding": "latin1", "output_encoding": "UTF-8"}),
    ],
    "FastBertNormalize": [
        Case(
            lambda count, text: ["many", _constant("bert", "FastBertNormalize", 1)], "STRING INT64 INT64", {"get_offsets": offsets}
        ) for offsets in (0, 1)
    ],
    "FastWordpieceTokenizeWithOffsets": [
        Case(
            lambda count, text, model=model: ["many", _constant(model, "FastWordpieceTokenizeWithOffsets", 1)],  # type: ignore[misc]
            "STRING INT64 INT64 INT64 INT64",
        ) for model in ("bert", "wordpiece_words")
    ],
    "TFText>FastWordpieceDetokenize": [
        Case(lambda count, text, splits=splits: [((count,), _scalar(5)), splits(count), _constant("bert_detokenized", "TFText>FastWordpieceDetokenize", 2)], "STRING")
        for splits in (lambda count: ("range", count + 1), lambda count: _scalar([0, count], np.int64))
    ],
    "TFText>FastSentencepieceDetokenize": [
        Case(lambda count, text: [recorded()["plain_decoder"], ((count,), _scalar(5)), ("range", count + 1)], "STRING")
    ],
    "TFText>FastSentencepieceTokenize": [
        Case(
            lambda count, text: [
                recorded()["default_encoder"], "many", _scalar(0), _scalar(0, np.float32), *[np.array(False)] * 3
            ],
            "INT32 INT32",
        )
    ],
    "NormalizeUTF8": [_each({"normalization_form": form}) for form in ("NFKC", "NFD")],
    "CaseFoldUTF8": [_each()],
    "RegexSplitWithOffsets": [
        Case(lambda count, text, kept=kept: ["many", _string(b"(b)"), _string(kept)], "STRING INT64 INT64 INT64") for kept in (b"", b"b")
    ],
    "tftext:WhitespaceTokenizer": [Case(lambda count, text: ["many"], "STRING")],
    "TFText>WhitespaceTokenizeWithOffsetsV2": [
        Case(
            lambda count, text: ["many", _string(import_module("oplet_text_ops.texts.code_points").white_space_bits())],
            "STRING INT64 INT32 INT32",
        )
    ],
    "TFText>ByteSplitByOffsets": [
        Case(
            lambda count, text: ["text1", ((count,), _scalar(min(1, len(text)))), ((count,), _scalar(len(text))), _scalar([0, count], np.int64)],
            "STRING INT64",
        )
    ],
    "TFText>NgramsStringJoin": [
        Case(lambda count, text: ["many"], "STRING", {"width": width, "axis": -1, "string_separator": "--", "RAGGED_RANK": 0})
        for width in (2, 1000)
    ],
    "UnicodeEncode": [
        Case(
            lambda count, text, point=point: [((count,), _scalar(point)), *_rows(count)],
            "STRING",
            {"output_encoding": "UTF-8", "errors": "replace", "replacement_char": 65533},
        )
        for point in (0x1F600, -1)
    ],
    "UnicodeTranscode": [
        _each({"input_encoding": "UTF-8", "output_encoding": "UTF-32-BE", "errors": "replace", "replacement_char": 65533, "replace_control_characters": 0})
    ],
    "SentencepieceTokenizeOp": [Case(lambda count, text: ["pieces", "many", _scalar(0), _scalar(0, np.float32), *[np.array(False)] * 3], "STRING INT64")],
    "SentencepieceTokenizeWithOffsetsOp": [
        Case(lambda count, text: ["pieces", "many", _scalar(0), _scalar(0, np.float32), *[np.array(False)] * 3], "STRING INT64 INT64 INT64")
    ],
    "SentencepieceDetokenizeOp": [
        Case(lambda count, text, splits=splits: ["pieces", "many", splits(count), *[np.array(False)] * 3], "STRING")
        for splits in (lambda count: ("range", count + 1), lambda count: _scalar([0, count], np.int64))
    ],
}  # fmt: skip
#: Which texts an operator takes, where it refuses others, or where others are of no interest.
NAMES: Mapping[str, Sequence[str]] = {
    "FlexDecodeBase64": ("letters",), "FlexAsString": ("letters",), "FlexUnicodeEncode": ("letters",), "UnicodeEncode": ("letters",),
    "NormalizeUTF8": ("marks", "letters", "wide", "bytes"), "CaseFoldUTF8": ("marks", "letters", "wide", "bytes"),
    "FlexStringLower": ("letters", "wide", "bytes"), "FlexStringUpper": ("letters", "wide", "bytes"),
    "TFText>FastWordpieceDetokenize": ("letters",), "TFText>FastSentencepieceDetokenize": ("letters",),
}  # fmt: skip


def model_of(op: str, case: Case, count: int, text: bytes) -> bytes:
    """The model of a case: a few constants, and nodes that make large inputs of them."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()

    def constant(value: np.ndarray) -> int:
        kind = TensorType.STRING if value.dtype == object else value.dtype
        return graph.add_tensor("c", kind, value.shape, data=value)

    def filled(shape: Sequence[int], value: np.ndarray) -> int:
        kind = TensorType.STRING if value.dtype == object else value.dtype
        made = graph.add_tensor("filled", kind, list(shape))
        graph.add_operator("FILL", [constant(np.array(shape, np.int32)), constant(value)], [made])
        return made

    def tensor(given: Input) -> int:
        if isinstance(given, np.ndarray):
            return constant(given)
        if given == "pieces":
            made = graph.add_tensor("pieces", TensorType.RESOURCE, [])
            proto = {"container": "", "model": recorded()["plain_proto"].tobytes()}
            graph.add_operator("SentencepieceOp", [], [made], custom=True, custom_options=proto)
            return made
        if given in ("many", "text", "text1"):
            return {
                "many": lambda: filled([count], _string(text)),
                "text": lambda: constant(_string(text)),
                "text1": lambda: filled([1], _string(text)),
            }[given]()
        if given[0] == "range":
            made = graph.add_tensor("range", "int64", [given[1]])
            graph.add_operator(
                "RANGE", [constant(_scalar(each, np.int64)) for each in (0, given[1], 1)], [made], o.RangeOptions()
            )
            return made
        return filled(*given)

    known: dict[str, int] = {}
    inputs = []
    for given in case.inputs(count, text):
        if isinstance(given, str) and given in known:
            inputs.append(known[given])
            continue
        inputs.append(tensor(given))
        if isinstance(given, str):
            known[given] = inputs[-1]
    outputs = [graph.add_tensor(f"y{number}", TensorType[kind], [1]) for number, kind in enumerate(case.outputs.split())]
    options = (
        flex_options(op.removeprefix("Flex"), case.attributes) if op.startswith("Flex") else flexbuffer(dict(case.attributes))
    )
    graph.add_operator(op, inputs, outputs, custom=True, custom_options=options)
    graph.set_inputs()
    graph.set_outputs(*outputs)
    return builder.to_bytes()


def _run(data: bytes) -> str:
    """How far it came: "ran", or the class of the error that refused it."""
    interpreter = Interpreter(model_content=data, limits=LIMITS, plugins=["builtin_ops", "flex_ops", "text_ops"])
    try:
        interpreter.allocate_tensors()
        interpreter.invoke()
    except OpletError as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    return "ran"


def _status(key: str) -> int:
    return int(re.findall(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[0]) << 10


def run_within(data: bytes) -> Iterator[Any]:
    """Run in a fork with little memory and time; yield how it ended, and the memory that it took, as a part of the limit."""
    read, write = os.pipe()
    if not (child := os.fork()):
        resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + _SPACE,) * 2)
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        try:
            how = _run(data)
        except BaseException as error:
            how = f"!{type(error).__name__}: {error}"[:300]
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.write(write, json.dumps([how, round((_status("VmHWM") - before) / _LIMIT, 2)]).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    yield from json.loads(said) if said else [f"!signal {status}", -1.0]


def main(ops: Sequence[str], few: bool) -> None:
    """Print a line of JSON for each case, size and text."""
    for op in ops:
        for number, case in enumerate(CASES[op][:1] if few else CASES[op]):
            _run(model_of(op, case, 2, b"abcd"))  # loads what the operator needs
            names = NAMES.get(op, tuple(TEXTS))
            for count, length in SIZES[:1] if few else SIZES:
                # All texts in the first size, and one in the others.
                for name in names[:: len(names) - 1 or 1] if few else names if (count, length) == SIZES[0] else names[:1]:
                    piece = TEXTS[name]
                    how, part = run_within(model_of(op, case, count, piece * (length // len(piece))))
                    print(json.dumps([op, number, count, length, name, how, part]), flush=True)


if __name__ == "__main__":
    main([each for each in sys.argv[1:] if each != "--few"], "--few" in sys.argv)
