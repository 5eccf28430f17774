"""LinMaxMatch, the linear-time WordPiece algorithm, for one text: a trie with failure links.

Numerics: core/kernels/fast_wordpiece_tokenizer.cc of tensorflow/text, which has LinMaxMatch (Song et al., "Fast WordPiece Tokenization",
EMNLP 2021).
"""

from __future__ import annotations

from collections.abc import Sequence

from oplet import ensure
from oplet.kernels.strings import StringMeter
from oplet_text_ops.models.pieces import Piece
from oplet_text_ops.models.wordpiece import NO_LINK, WordpieceModel
from oplet_text_ops.texts.code_points import PLAIN, PUNCTUATION, WHITE_SPACE, kind_of
from oplet_text_ops.texts.utf8 import characters

__all__ = ["cut"]

#: Failure links followed per byte of a text, above which they lead in a circle; those of a vocabulary are at most one.
_MOST_LINKS = 4
#: Bytes of scratch for each byte of a text (its characters), bytes of a token besides its text, and how slow reading a text is.
_SCRATCH, _TOKEN, _SLOW = 48, 160, 64


def cut(model: WordpieceModel, text: bytes, meter: StringMeter) -> list[Piece]:
    """Tokenize a text, or a single word if the model is not end-to-end, by the linear-time WordPiece algorithm.

    Raises:
        EnsureError: the model is damaged: failure links form a cycle, or tokens are longer than their text.
    """
    whole = _Cut(model, text, meter)
    return whole.pieces(characters(text)) if model.end_to_end else whole.word()


class _Cut:
    """Tokenizer state for one text: the trie node, the current word's start, its tokens so far."""

    def __init__(self, model: WordpieceModel, text: bytes, meter: StringMeter) -> None:
        self.model, self.text, self.meter = model, text, meter
        meter.read(_SLOW * len(text))
        meter.hold(_SCRATCH * len(text))
        self.tokens: list[Piece] = []
        self.node = 0
        self.begin = 0  # where the word begins
        self.kept = 0  # how many tokens the words before it have
        self.offset = 0  # how much of the word its tokens cover
        self.links = _MOST_LINKS * (len(text) + 8)

    def pieces(self, chars: Sequence[bytes]) -> list[Piece]:
        """Tokenize a text, splitting it at white space and punctuation."""
        model, walk, kinds = self.model, self.model.trie.walk, [kind_of(char) for char in chars]
        at = place = 0
        last = PLAIN
        while place < len(chars):
            self.node, self.begin, self.offset, self.kept = 0, at, 0, len(self.tokens)
            before = PLAIN
            while place < len(chars):
                before, last = last, kinds[place]
                char = chars[place]
                if at - self.begin + len(char) > model.longest:
                    break
                child = walk(self.node, char)
                while child < 0 and self.follow():
                    child = walk(self.node, char)
                if child < 0:
                    break
                self.node = child
                at += len(char)
                place += 1
            if place == len(chars):
                self.finish(at)
                break
            kind = kinds[place]
            if kind != PLAIN or (at and before == PUNCTUATION):
                self.finish(at)
                if kind == WHITE_SPACE or at == self.begin:
                    at += len(chars[place])
                    place += 1
                    if kind != WHITE_SPACE:
                        self.give_up(at)
                continue
            end = at
            while place < len(chars) and kinds[place] == PLAIN:
                end += len(chars[place])
                place += 1
            at = end
            if place < len(chars) and kinds[place] == WHITE_SPACE:
                at += len(chars[place])
                place += 1
            self.give_up(end)
        return self.tokens

    def word(self) -> list[Piece]:
        """Tokenize a single word."""
        step = self.model.trie.step
        if len(self.text) > self.model.longest:
            self.give_up(len(self.text))
            return self.tokens
        for byte in self.text:
            child = step(self.node, byte)
            while child < 0:
                if not self.follow():
                    self.give_up(len(self.text))
                    return self.tokens
                child = step(self.node, byte)
            self.node = child
        self.finish(len(self.text))
        return self.tokens

    def follow(self) -> bool:
        """Follow the failure link: emit its tokens and move to its node; return False if there is none."""
        model, node = self.model, self.node
        if node >= len(model.links):
            return False
        self.links -= 1
        ensure(self.links >= 0, "the failure links of the WordPiece vocabulary lead in a circle; convert the model again.")
        value = model.trie.value(node)
        if value >= 0:
            self.take(value)
        elif model.links[node] == NO_LINK:
            return False
        else:
            pops = int(model.pops[node])
            for token in model.pool[pops >> 8 : (pops >> 8) + (pops & 0xFF) + 1].tolist():
                self.take(token)
        self.node = int(model.links[node])
        return True

    def finish(self, end: int) -> None:
        """Emit the tokens of the rest of the word, which ends at `end`."""
        model = self.model
        if not self.node:
            return
        if self.node == model.suffix_root and len(self.tokens) == self.kept:
            # The word is the suffix indicator itself.
            if len(model.suffix_alone) == 1 and _number(model.suffix_alone[0]) == model.unknown:
                self.give_up(end)
            else:
                for token in model.suffix_alone:
                    self.take(token)
            return
        while self.node not in (model.suffix_root, model.punctuation_end):
            if not self.follow():
                self.give_up(end)
                return

    def take(self, token: int) -> None:
        """Add a token as the trie encodes it: bit 30 marks a suffix, 22 bits are its id, 8 bits its length minus one."""
        model, offset = self.model, self.offset
        number, size = _number(token), (token & 0xFF) + 1
        if not offset and token >> 30:
            size += len(model.suffix)  # the word begins with the suffix indicator
        start, end = self.begin + offset, self.begin + offset + size
        ensure(end <= len(self.text), "tokens of the WordPiece vocabulary are longer than their text; convert the model again.")
        piece = model.unknown_token if number == model.unknown else self.text[start:end]
        self.meter.add(_TOKEN + len(piece) + (len(model.suffix) if offset else 0))
        self.tokens.append((model.suffix + piece if offset else piece, number, start, end))
        self.offset += size

    def give_up(self, end: int) -> None:
        """Replace the word's tokens by one unknown token, up to `end`."""
        del self.tokens[self.kept :]
        self.meter.add(_TOKEN)
        self.tokens.append((self.model.unknown_token, self.model.unknown, self.begin, end))
        self.kept += 1


def _number(code: int) -> int:
    """Return the vocabulary id of a token as the trie encodes it."""
    return code >> 8 & 0x3FFFFF
