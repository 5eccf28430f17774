"""SKIP_GRAM: the n-grams of a sentence's words, with at most a given number of words skipped between two.

Numerics: tflite/kernels/skip_gram.cc
"""

from __future__ import annotations

from collections.abc import Iterator

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.limits import paced
from oplet.kernels.operands import ensure_operands
from oplet.kernels.strings import StringMeter
from oplet.schema.options import SkipGramOptions

_SPACES = b" \t\n\v\f\r"
#: Bytes of a short word's object per letter; bytes of the references to an n-gram, in the list and the output.
_WORD, _REFERENCES = 24, 2 * 8
#: A mask of the number of n-grams, at which a checkpoint follows each time that its bits are 0; bytes read between two checkpoints.
_OFTEN, _BYTES = 15, 1 << 16


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, TensorType.STRING)
    ensure_type(output, TensorType.STRING)
    ensure(source.size > 0, f"{source} must hold a sentence.")
    context.set_dynamic(output)


def bind(context: Context, node: Node) -> Thunk:
    source, output, options = node.inputs[0], node.outputs[0], node.options(SkipGramOptions)

    def run() -> None:
        sentence = source.data.reshape(-1)[0]
        charge(len(sentence) * _WORD)
        words = _words(sentence)
        size = options.ngram_size
        grams: list[bytes] = []
        meter = StringMeter()
        meter.add(len(sentence) * _WORD, 0)
        if 0 < size <= len(words):
            for number, chosen in enumerate(_choices(len(words), size, options.max_skip_size)):
                if not number & _OFTEN:
                    checkpoint()
                if options.include_all_ngrams or len(chosen) == size:
                    grams.append(meter.join(b" ", [words[position] for position in chosen]))
                    meter.add(_REFERENCES, 0)
        context.resize_tensor(output, (len(grams),))
        output.data[...] = grams

    return run


def _words(sentence: bytes) -> list[bytes]:
    """Split a sentence at white space; leading white space belongs to the first word, as in LiteRT."""
    words = []
    start = 0
    for position in paced(range(1, len(sentence)), _BYTES):
        if sentence[position] in _SPACES:
            if position > start and sentence[start] not in _SPACES:
                words.append(sentence[start:position])
            start = position + 1
    if len(sentence) > start:
        words.append(sentence[start:])
    return words


def _choices(count: int, size: int, skipped: int) -> Iterator[list[int]]:
    """Yield ascending positions of skip-grams: at most `size` words, at most `skipped` left out between two; longer ones first."""
    chosen, following = [0], [1]
    while chosen:
        last = chosen[-1]
        candidate = following[-1]
        if len(chosen) < size and candidate < count and candidate - last <= skipped + 1:
            following[-1] += 1
            chosen.append(candidate)
            following.append(candidate + 1)
            continue
        yield chosen
        chosen.pop()
        following.pop()
        if not chosen and last + 1 < count:
            chosen, following = [last + 1], [last + 2]


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
