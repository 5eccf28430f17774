"""Tokenizers of bundles, by the packages tokenizers and sentencepiece, which are imported when one is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oplet.errors import LimitError, ModelError, text_of

if TYPE_CHECKING:
    from oplet_lm.bundles.bundle import Bundle

__all__ = ["TextStream", "Tokenizer"]

#: The longest text to encode, in characters.
_LONGEST = 16 << 20


class Tokenizer:
    """The tokenizer of a bundle.

    Args:
        bundle: the bundle.

    Raises:
        ModelError: the bundle has no tokenizer, or a damaged one.
    """

    def __init__(self, bundle: Bundle) -> None:
        kind, data = bundle.tokenizer()
        self._is_sentencepiece = kind == "sentencepiece"
        try:
            if self._is_sentencepiece:
                import sentencepiece

                self._made: Any = sentencepiece.SentencePieceProcessor(model_proto=data)
                self.size: int = self._made.get_piece_size()
            else:
                import tokenizers

                self._made = tokenizers.Tokenizer.from_str(data.decode("utf-8"))
                self.size = self._made.get_vocab_size()
        except BaseException as error:
            raise _failure(error, f"'{bundle.path}' has a damaged tokenizer") from error

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text; special tokens in the text are recognized, and none are added.

        Raises:
            LimitError: the text is too long.
            ModelError: the tokenizer fails.
        """
        if len(text) > _LONGEST:
            raise LimitError(f"The text has {len(text)} characters; {_LONGEST} are taken at most.")
        try:
            found: list[int] = (
                self._made.encode(text) if self._is_sentencepiece else self._made.encode(text, add_special_tokens=False).ids
            )
        except BaseException as error:
            raise _failure(error, "The tokenizer cannot encode a text") from error
        return found

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids; unknown ids are skipped.

        Raises:
            ModelError: the tokenizer fails.
        """
        known = [token for token in tokens if 0 <= token < self.size]
        try:
            found: str = (
                self._made.decode(known) if self._is_sentencepiece else self._made.decode(known, skip_special_tokens=False)
            )
        except BaseException as error:
            raise _failure(error, "The tokenizer cannot decode tokens") from error
        return found


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


def _failure(error: BaseException, what: str) -> BaseException:
    """Return what to raise for an exception of a tokenizer; a panic of Rust code is no `Exception`."""
    if isinstance(error, Exception) or type(error).__name__ == "PanicException":
        return ModelError(f"{what}: {text_of(error)[:200] if isinstance(error, Exception) else error}.")
    return error
