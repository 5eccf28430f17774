"""The vocabulary of a FastWordpieceTokenizerConfig by id, for detokenization.

Numerics: core/kernels/fast_wordpiece_tokenizer.cc of tensorflow/text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import ensure
from oplet.kernels.strings import StringMeter
from oplet_text_ops.tables.flat_table import FlatTable

__all__ = ["Detokenizer"]

#: Bytes of a reference.
_REFERENCE = 8


class Detokenizer:
    """Joins WordPiece token ids to text.

    Args:
        buffer: the FlatBuffer of the config.

    Raises:
        EnsureError: the config has no vocabulary.
    """

    def __init__(self, buffer: bytes) -> None:
        table = FlatTable(buffer, "the WordPiece vocabulary")
        ensure(
            table.number(11, "?"),
            "the WordPiece vocabulary has no tokens by number; build its model with support_detokenization=True.",
        )
        self._tokens = table.strings(12)
        self._goes_on = table.vector(13, np.uint8).astype(bool).tolist()
        self._indicator = table.string(5)

    def text(self, numbers: Sequence[int], meter: StringMeter) -> bytes:
        """Return the text of token ids, words separated by spaces; a leading suffix token keeps its indicator ("##").

        Raises:
            EnsureError: a number is not in the vocabulary.
        """
        tokens, goes_on = self._tokens, self._goes_on
        size = min(len(tokens), len(goes_on))
        parts: list[bytes] = []
        meter.hold(2 * _REFERENCE * len(numbers))
        for number in numbers:
            if not 0 <= number < size:
                ensure(False, f"token {number} is not in the vocabulary of {size} tokens.")
            if goes_on[number]:
                if not parts:
                    parts.append(self._indicator)
            elif parts:
                parts.append(b" ")
            parts.append(tokens[number])
        return meter.join(b"", parts)
