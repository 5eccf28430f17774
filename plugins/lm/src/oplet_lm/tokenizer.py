"""Tokenizers of bundles, by the packages tokenizers and sentencepiece, which are imported when one is needed."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from oplet.errors import LimitError, ModelError, StateError, text_of
from oplet.schema.protobuf import BYTES, fields, spans

if TYPE_CHECKING:
    from oplet_lm.bundle import Bundle

__all__ = ["TextStream", "Tokenizer"]

#: The most characters that a text may become while it is encoded or decoded, as reckoned beforehand; of how many the memory is that Hugging
#: Face's library takes to encode one; and the most entries of a tokenizer (pieces, merges), which take 200 bytes and more: Gemma's has 1.3 million.
_LONGEST, _PLACES, _MOST_ENTRIES = 32 << 20, 8, 3 << 20
#: What steps of Hugging Face's tokenizers put into texts; fields of SentencePiece's ModelProto: what are no pieces; and maps of characters.
_PUT, _SPECS, _MAP = ("content", "prepend", "replacement", "prefix", "suffix"), (2, 3, 4, 5), 2


class Tokenizer:
    """The tokenizer of a bundle; where it is damaged or fails, all methods raise a `ModelError`, without its package a `StateError`."""

    def __init__(self, bundle: Bundle) -> None:
        kind, data = bundle.tokenizer()
        made: Any
        with _failing(f"'{bundle.path}' has a damaged tokenizer"):
            if kind == "sentencepiece":
                import sentencepiece

                self._growth = self._growth_back = _sentencepiece_growth(data)
                made = sentencepiece.SentencePieceProcessor(model_proto=data)
                self._size: int = made.get_piece_size()
                self._encode, self._decode = made.encode, made.decode
                self._piece = made.id_to_piece
            else:
                import tokenizers

                if data.count(b",") > _MOST_ENTRIES:
                    raise ValueError(f"it has more than {_MOST_ENTRIES} entries")
                made = tokenizers.Tokenizer.from_str(data.decode("utf-8"))
                self._size = made.get_vocab_size()
                # Special tokens in a text are recognized, and none are added or left out.
                self._encode = lambda text: made.encode(text, add_special_tokens=False).ids
                self._decode = partial(made.decode, skip_special_tokens=False)
                made.no_truncation()
                made.no_padding()
                made.post_processor = None  # which could repeat tokens
                self._piece = made.id_to_token
                steps = [made.normalizer, made.pre_tokenizer, made.decoder]
                *before, after = (_growth(json.loads(each.__getstate__())) if each else 1 for each in steps)
                self._growth, self._growth_back = _PLACES * math.prod(before), after

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text; a text that is too long is a `LimitError`."""
        _ensure_short(len(text), self._growth)
        with _failing("The tokenizer cannot encode a text"):
            text.encode()  # refuses half a surrogate pair, and says where it is
            return list(self._encode(text))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids; unknown ids are skipped. A text that is too long is a `LimitError`."""
        known = [token for token in tokens if 0 <= token < self._size]
        _ensure_short(sum(len(self._piece(token) or "") for token in known), self._growth_back)
        with _failing("The tokenizer cannot decode tokens"):
            return str(self._decode(known))


class TextStream:
    """Incremental detokenizer: returns a character that consists of several tokens with the last of them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        #: The tokens that the next text hangs on: those of the last piece, as the first token of a text may lose a space, and newer ones.
        self._tokens: list[int] = []
        self._told = 0

    def add(self, tokens: Sequence[int], *, last: bool = False) -> str:
        """Return the text that further tokens add; "" while it is incomplete, unless `last` says that no more follow."""
        self._tokens += tokens
        before = self._tokenizer.decode(self._tokens[: self._told])
        whole = self._tokenizer.decode(self._tokens)
        if len(whole) <= len(before) or (whole.endswith("\ufffd") and not last and len(self._tokens) - self._told < 8):
            return ""
        self._tokens, self._told = self._tokens[self._told :], len(self._tokens) - self._told
        return whole[len(before) :]


def _ensure_short(length: int, growth: int) -> None:
    if (most := length * growth) > _LONGEST:
        raise LimitError(f"The tokenizer may take memory for {most} characters of {length}; {_LONGEST} are taken at most.")


def _growth(step: Any) -> int:
    """Return how many characters a step of a Hugging Face tokenizer, as JSON, makes of one at most."""
    if not isinstance(step, dict):
        return math.prod(map(_growth, step)) if isinstance(step, list) else 1
    put = sum(len(step[name]) for name in _PUT if isinstance(step.get(name), str))
    put += _longest_entry(b64decode(step.get("precompiled_charsmap") or ""))
    # Other steps make more of a text once, however often they stand there.
    return (4 if step.get("type") == "ByteLevel" else put + 1) * math.prod(map(_growth, step.values()))


def _sentencepiece_growth(data: bytes) -> int:
    """Return how many bytes the normalizers of a SentencePiece model make of a character at most, if it has not too many fields."""
    at = count = 0
    while data[at : at + 1] == b"\x0a" and data[at + 1] < 128 and count < _MOST_ENTRIES:  # short pieces, most of a model
        at, count = at + 2 + data[at + 1], count + 1
    others = spans(data, at, most=_MOST_ENTRIES)
    specs = b"".join(data[begin:end] for number, kind, begin, end in others if number in _SPECS and kind == BYTES)
    maps = (value for number, value in fields(specs, _MOST_ENTRIES) if number == _MAP and isinstance(value, bytes))
    return 1 + max(map(_longest_entry, maps), default=0)


def _longest_entry(charsmap: bytes) -> int:
    """Return the longest text, in bytes, that SentencePiece's precompiled map of characters puts in the place of one."""
    first = 4 + int.from_bytes(charsmap[:4], "little")  # behind a tree of the texts that are replaced
    return max((len(found[0]) for found in re.finditer(rb"[^\0]+", charsmap[first:])), default=0)


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Raise a tokenizer's exceptions as ModelErrors; a panic of Rust code is no `Exception`."""
    try:
        yield
    except ImportError as error:
        raise StateError(f"The tokenizer's package cannot be imported: {text_of(error)}; pip install {error.name}.") from error
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ModelError(f"{what}: {text_of(error)[:200] if isinstance(error, Exception) else error}.") from error
        raise
