"""Tokenizers of bundles, by the packages tokenizers and sentencepiece, which are imported when one is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from oplet.errors import LimitError, ModelError, text_of

if TYPE_CHECKING:
    from oplet_lm.bundle import Bundle

__all__ = ["TextStream", "Tokenizer"]

#: The longest text to encode, in characters.
_LONGEST = 16 << 20


class Tokenizer:
    """The tokenizer of a bundle; where it is damaged or fails, all methods raise a `ModelError`."""

    def __init__(self, bundle: Bundle) -> None:
        kind, data = bundle.tokenizer()
        made: Any
        with _failing(f"'{bundle.path}' has a damaged tokenizer"):
            if kind == "sentencepiece":
                import sentencepiece

                made = sentencepiece.SentencePieceProcessor(model_proto=data)
                self._size: int = made.get_piece_size()
                self._encode, self._decode = made.encode, made.decode
            else:
                import tokenizers

                made = tokenizers.Tokenizer.from_str(data.decode("utf-8"))
                self._size = made.get_vocab_size()
                # Special tokens in a text are recognized, and none are added or left out.
                self._encode = lambda text: made.encode(text, add_special_tokens=False).ids
                self._decode = partial(made.decode, skip_special_tokens=False)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text; a text that is too long is a `LimitError`."""
        if len(text) > _LONGEST:
            raise LimitError(f"The text has {len(text)} characters; {_LONGEST} are taken at most.")
        with _failing("The tokenizer cannot encode a text"):
            text.encode()  # refuses half a surrogate pair, and says where it is
            return list(self._encode(text))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids; unknown ids are skipped."""
        with _failing("The tokenizer cannot decode tokens"):
            return str(self._decode([token for token in tokens if 0 <= token < self._size]))


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


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Raise a tokenizer's exceptions as ModelErrors; a panic of Rust code is no `Exception`."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ModelError(f"{what}: {text_of(error)[:200] if isinstance(error, Exception) else error}.") from error
        raise
