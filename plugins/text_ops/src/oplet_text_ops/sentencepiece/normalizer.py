"""Text normalization by a FlatBuffer sentencepiece model: replacements, runs of spaces merged, spaces as U+2581.

Numerics: NormalizeString in optimized_encoder.cc of tensorflow/text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oplet import ensure
from oplet.kernels.strings import StringMeter
from oplet_text_ops.nodes import parts
from oplet_text_ops.sentencepiece.trie import SPACE, PieceTrie, together

__all__ = ["Normalizer", "Spaces"]

_SPACES, _SPACE = re.compile(rb"[ \t\r\n]{2,}"), re.compile(rb"[ \t\r\n]")
_ENDS = (b" ", b"\t", b"\r", b"\n")
_SAME_SPACES = bytes.maketrans(b"\t\r\n", b"   ")
#: What words are looked at twice for: spaces in them, and at their end what stands for one.
_UNUSUAL = re.compile(rb"[ \t\r\n]|" + SPACE + rb"\Z")
_PLAIN = re.compile(rb"[!-~]+")
#: The longest text that one prefix is replaced by; Unicode's compatibility forms have up to 33 bytes.
_LONGEST = 1024
#: Fewer texts than this are normalized one by one.
_FEW = 32
#: Bytes of scratch for each byte of a text whose spaces are merged and escaped.
_SCRATCH = 48
#: Bytes of scratch for each byte of words that are normalized together, and how many these are.
_TOGETHER, _AT_ONCE = 160, 1 << 16


class Spaces(NamedTuple):
    """The options for spaces in normalized texts.

    Attributes:
        prefix: a space is put before each text.
        merge: spaces in a row become one, and those at the end none.
        escape: each space is written as U+2581.
    """

    prefix: bool
    merge: bool
    escape: bool


class Normalizer:
    """The text normalization of one sentencepiece model.

    Args:
        trie: the strings that are replaced; their values are byte offsets in `replacements`.
        replacements: the texts that replace them, each ended by a zero byte.
        spaces: the options for spaces.
    """

    def __init__(self, trie: PieceTrie, replacements: bytes, spaces: Spaces) -> None:
        self.spaces = spaces
        self._trie, self._replacements = trie, replacements
        self._known: dict[int, bytes] = {}
        self._none = trie.empty
        #: Whether nothing in a text of printable ASCII but for its spaces is replaced.
        self._plain = trie.empty or not trie.has_key_of(0x21, 0x7E)
        #: Whether the words of a text can be normalized one by one.
        self.by_words = all(spaces) and (trie.empty or not trie.has_key_with(0x20))

    def text(self, text: bytes) -> bytes:
        """Normalize a whole text; return it."""
        if not text:
            return text
        prefix, merge, escape = self.spaces
        text = self._replaced(b" " + text if prefix else text, StringMeter())
        StringMeter().hold(_SCRATCH * len(text))
        if merge:
            text = _SPACES.sub(b" ", text)
            if text[-1:] in _ENDS:
                text = text[:-1]
        return text.translate(_SAME_SPACES).replace(b" ", SPACE) if escape else text

    def words(self, words: Sequence[bytes]) -> list[bytes | list[bytes] | None]:
        """Normalize words (texts between two spaces) one by one; return words with a leading space.

        A word may become a list of none or several words, or None if it must be normalized together with its neighbours, as a
        match crosses their border. Only for models whose `by_words` is true.
        """
        meter = StringMeter()
        meter.add(sum(map(len, words)) + len(SPACE) * len(words), len(words))
        made: list[bytes | list[bytes] | None] = [SPACE + word for word in words]
        others = [number for number, word in enumerate(words) if not (self._plain and _PLAIN.fullmatch(word))]
        texts = [words[number] for number in others]
        if len(texts) < _FEW:
            replaced = [self._replaced(text, meter) for text in texts]
        else:
            replaced = [text for part in parts(texts, _TOGETHER, _AT_ONCE) for text in self._all_replaced(part, meter)]
        for number, text in zip(others, replaced):
            if text and not _UNUSUAL.search(text):
                made[number] = SPACE + text
                continue
            meter.add(2 * len(text), 2 * (1 + sum(map(text.count, _ENDS))))
            found = [SPACE + part for part in _SPACE.split(text) if part]
            made[number] = None if any(part.endswith(SPACE) for part in found) else found
        return made

    def _all_replaced(self, texts: Sequence[bytes], meter: StringMeter) -> list[bytes]:
        """Apply the replacements to many texts at once; those with overlapping matches one by one."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        text, begins = together(texts, lengths)
        at = np.flatnonzero(text != 256).astype(np.int32)
        sizes, values = np.zeros(len(text), np.int32), np.zeros(len(text), np.int32)
        for length, here, value in self._trie.matches(text, at):
            sizes[at[here]], values[at[here]] = length, value
        sizes[values >= len(self._replacements)] = 0
        places = np.flatnonzero(sizes)
        ends = places + sizes[places]
        owners = np.searchsorted(begins, places, "right") - 1
        overlapping = set(owners[1:][ends[:-1] > places[1:]].tolist())
        made = list(texts)
        parts: list[bytes] = []
        done, last = 0, -1
        for owner, begin, end, value in zip(
            owners.tolist(), (places - begins[owners]).tolist(), (ends - begins[owners]).tolist(), values[places].tolist()
        ):
            if owner != last:
                if parts:
                    made[last] = b"".join(parts) + texts[last][done:]
                done, parts, last = 0, [], owner
            replacement = self._replacement(value)
            meter.add(2 * (max(begin - done, 0) + len(replacement)))  # once more when they are joined
            parts += (texts[owner][done:begin], replacement)
            done = end
        if parts:
            made[last] = b"".join(parts) + texts[last][done:]
        for owner in overlapping:
            made[owner] = self._replaced(texts[owner], meter)
        return made

    def _replaced(self, text: bytes, meter: StringMeter) -> bytes:
        """Replace the longest matching prefix at each position, from left to right."""
        if self._none:
            return text
        trie = self._trie
        bases, labels, values = trie.bases, trie.labels, trie.values
        made, done, at, length = bytearray(), 0, 0, len(text)
        while at < length:
            node, found, behind = 0, -1, 0
            for end in range(at, length):
                byte = text[end]
                node = bases[node] ^ byte
                if labels[node] != byte:
                    break
                if values[node] >= 0:
                    found, behind = values[node], end + 1
            meter.read(end - at)
            if 0 <= found < len(self._replacements):
                replacement = self._replacement(found)
                meter.add(3 * (at - done + len(replacement)), 0)  # twice more when it is ended
                made += text[done:at]
                made += replacement
                done = at = behind
            else:
                at += 1
        if not done:
            return text
        made += text[done:]
        return bytes(made)

    def _replacement(self, place: int) -> bytes:
        found = self._known.get(place)
        if found is None:
            end = self._replacements.find(b"\0", place, place + _LONGEST)
            if end < 0:
                end = len(self._replacements)
            ensure(
                end - place <= _LONGEST,
                f"its sentencepiece model replaces a prefix by a text of more than {_LONGEST} bytes; convert the model again.",
            )
            found = self._known[place] = self._replacements[place:end]
        return found
