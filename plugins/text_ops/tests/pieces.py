"""Sentencepiece models and texts for tests, and what TensorFlow Text gave for them (`record_sentencepiece`)."""

from __future__ import annotations

import functools
import io
import lzma
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from oplet import Interpreter, MutableOpResolver
from oplet.builder import ModelBuilder, TensorType
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec
from oplet_text_ops import register_ops

DATA = Path(__file__).with_name("sentencepiece.npz.xz")
MODELS = ("default", "plain", "spaces", "pairs", "bytes", "suffixes")
#: Whether the code of the beginning and that of the end are added, and whether all is reversed.
FLAGS = {"plain": (False, False, False), "all": (True, True, True), "first": (True, False, False)}

#: Letters, and what is special to tokenizers: spaces of all kinds, controls, marks that combine, wide and compatible forms.
_ALPHABET = [
    *"thequickbrownfoxjumpedoverlazydogsTHEQUICK .,!'-_$ \t\n\r\v\f\0", "  ", "\u00e9", "\u3000", "\u4e2d", "\u0301", "\u0130",
    "\u00df", "\u2019", "\u00a0", "\u200b", "\U0001f600", "\u0660", "\u00b4", "\u2028", "\u0085", "\u1680", "\x1c", "\x11", "\u2581",
    "\u2581\u2581", "a\u2581b", "<mask>", "<s>", "\u00aa", "\uff21", "\u00bd", "\ufb01", "A\u030a", "\ufdfa", "\u0e01", "\uac00",
    "\u1100\u1161", "\ue000", "\u304b\u3099", "\uff76\uff9e",
]  # fmt: skip


def random_texts(count: int, pick: random.Random) -> list[bytes]:
    """Texts of any code points, of letters and special characters, and of any bytes."""
    texts = []
    for number in range(count):
        length = pick.randint(0, 40)
        if number % 3 == 0:
            points = (pick.choice([pick.randrange(128), pick.randrange(0x3000), pick.randrange(0x110000)]) for _ in range(length))
            texts.append("".join(chr(point) for point in points).encode("utf-8", "surrogatepass"))
        elif number % 3 == 1:
            texts.append("".join(pick.choice(_ALPHABET) for _ in range(length)).encode())
        else:
            texts.append(bytes(pick.randrange(256) for _ in range(length // 2)))
    return texts


def packed(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Texts behind one another, and where each begins and ends."""
    return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)]).astype(np.int32)


@functools.cache
def recorded() -> dict[str, Any]:
    """The arrays of the record."""
    with np.load(io.BytesIO(lzma.decompress(DATA.read_bytes()))) as arrays:
        return dict(arrays)


def unpacked(name: str) -> list[bytes]:
    """The texts under a name of the record."""
    data, splits = recorded()[name].tobytes(), recorded()[f"{name}_splits"].tolist()
    return [data[begin:end] for begin, end in pairwise(splits)]


def sentences(count: int, pick: random.Random) -> list[bytes]:
    """Sentences of real words in many scripts: those of the record, and new ones of their words."""
    known = unpacked("texts")[:200]
    words = [word for text in known for word in text.split()]
    made = [b" ".join(pick.choices(words, k=pick.randint(3, 20))) for _ in range(max(0, count - len(known)))]
    return (known + made)[:count]


def piece_model(model: str, flags: tuple[bool, bool, bool] = FLAGS["plain"]) -> bytes:
    """A model of one FastSentencepieceTokenize, as the converter writes it.

    Args:
        model: one of `MODELS`.
        flags: whether the code of the beginning and that of the end are added, and whether all is reversed.
    """
    constants = [np.array(0, np.int32), np.array(0, np.float32), *(np.array(flag) for flag in flags)]
    return one_op_model(
        "TFText>FastSentencepieceTokenize",
        [recorded()[f"{model}_encoder"], Spec("object", [1], signature=[-1]), *constants],
        [Spec("int32", [1]), Spec("int32", [2])],
        custom_options=flexbuffer({"Tsplits": 2, "out_type": 2}),
    )


def flexbuffer(options: dict[str, Any]) -> bytes:
    """Options as the converter writes them: a FlexBuffers map."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in options.items():
            if isinstance(value, list):
                with builder.TypedVector(key):
                    for item in value:
                        builder.String(item)
            else:
                (builder.String if isinstance(value, str) else builder.Int)(key, value)
    return bytes(builder.Finish())


class OneOp:
    """A node of one op of this package, without a file: its inputs are fed, or constant where they are given as such."""

    def __init__(self, op: str, options: dict[str, Any], outputs: Sequence[str]) -> None:
        self.op, self.options, self.outputs = op, flexbuffer(options), [Spec(type, [1]) for type in outputs]

    def __call__(self, *feeds: Any) -> list[Any]:
        """The outputs of one run."""
        resolver = MutableOpResolver()
        register_ops(resolver)
        inputs = [Spec(feed.dtype, feed.shape) for feed in feeds]
        model = one_op_model(self.op, inputs, self.outputs, custom_options=self.options)
        interpreter = Interpreter(model_content=model, op_resolver=resolver, plugins=[])
        interpreter.allocate_tensors()
        for detail, feed in zip(interpreter.get_input_details(), feeds):
            interpreter.set_tensor(detail["index"], feed)
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def strings(*values: bytes) -> Any:
    """A vector of strings."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def classic_model(source: str, op: str, kinds: Sequence[str], settings: dict[str, Any], *feeds: Any, proto: bytes = b"") -> bytes:
    """A model of an op that a sentencepiece model comes from, and one op that takes it.

    Args:
        source: the first op; `proto` is its option `model`, where it has one.
        op: the second op, with its outputs' types and its options.
        feeds: arrays of the types and shapes of its other inputs.
    """
    builder = ModelBuilder("pieces")
    graph = builder.add_subgraph()
    model = graph.add_tensor("model", TensorType.RESOURCE, [])
    inputs = [graph.add_tensor(f"input{number}", feed.dtype, feed.shape) for number, feed in enumerate(feeds)]
    outputs = [graph.add_tensor(f"output{number}", kind, [1]) for number, kind in enumerate(kinds)]
    graph.set_inputs(*inputs)
    graph.set_outputs(*outputs)
    graph.add_operator(source, [], [model], custom=True, custom_options={"container": "", "model": proto} if proto else {})
    graph.add_operator(op, [model, *inputs], outputs, custom=True, custom_options=settings)
    return builder.to_bytes()
