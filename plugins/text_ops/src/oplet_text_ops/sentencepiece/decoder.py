"""Detokenizer of a FlatBuffer sentencepiece model: ids to text.

Format: decoder_config.fbs of tensorflow/text; numerics: optimized_decoder.cc.
"""

from __future__ import annotations

from array import array
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from oplet import ensure
from oplet.kernels.strings import StringMeter
from oplet_text_ops.tables.flat_table import FlatTable

__all__ = ["Decoder"]

#: Bytes of a reference.
_REFERENCE = 8
#: The fields of DecoderConfig, by their order in the schema.
_VERSION, _OFFSET, _PIECES, _, _, _PREFIX = range(6)


class Decoder:
    """The detokenizer tables of one model.

    Args:
        table: its FlatBuffer.

    Raises:
        EnsureError: the FlatBuffer is damaged, or is no sentencepiece model.
    """

    def __init__(self, table: bytes) -> None:
        config = FlatTable(table, "the sentencepiece model")
        version = config.number(_VERSION, "b")
        ensure(version == 0, lambda: f"its detokenizer is of version {version}, and 0 is sentencepiece; convert the model again.")
        self._offset: int = config.number(_OFFSET, "i")
        # A piece is a string of C's: it ends at its first zero byte.
        self._pieces = [piece.partition(b"\0")[0] for piece in config.strings(_PIECES)]
        self._prefix = bool(config.number(_PREFIX, "?"))

    def decode(self, codes: NDArray[np.int32], splits: NDArray[np.int64]) -> list[bytes]:
        """Return the text of each row of ids; `splits` are checked row splits.

        Raises:
            EnsureError: no piece has one of the ids.
        """
        numbers = codes.astype(np.int64) - self._offset
        wrong = np.flatnonzero((numbers < 0) | (numbers >= len(self._pieces)))
        ensure(
            not len(wrong),
            lambda: (
                f"code {codes[wrong[0]]} is none of its sentencepiece model, which has {len(self._pieces)} pieces from"
                f" {self._offset} on."
            ),
        )
        pieces, found, bounds = self._pieces, array("q", numbers.tobytes()), array("q", splits.tobytes())
        meter, texts = StringMeter(), []
        for begin, end in pairwise(bounds):
            meter.hold(2 * _REFERENCE * (end - begin))
            parts = [pieces[number] for number in found[begin:end]]
            if self._prefix and parts:
                parts[0] = parts[0].removeprefix(b" ")
            texts.append(meter.join(b"", parts))
        return texts
