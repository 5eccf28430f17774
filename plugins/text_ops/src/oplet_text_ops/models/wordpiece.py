"""FastWordpieceTokenizerConfig: a WordPiece vocabulary as a trie with failure links.

Format: core/kernels/fast_wordpiece_tokenizer_model.fbs of tensorflow/text.
"""

from __future__ import annotations

import numpy as np

from oplet import ensure
from oplet_text_ops.tables.double_array import DoubleArray
from oplet_text_ops.tables.flat_table import FlatTable
from oplet_text_ops.texts.code_points import PUNCTUATION, WHITE_SPACES, kind_of
from oplet_text_ops.texts.utf8 import characters

__all__ = ["NO_LINK", "WordpieceModel"]

#: The failure link of nodes that have none.
NO_LINK = 0xFFFFFFFF


class WordpieceModel:
    """A WordPiece vocabulary as stored in the config.

    Args:
        buffer: the FlatBuffer of the config.

    Attributes:
        trie: from the bytes of tokens to their codes: bit 30 for a suffix, 22 bits for the number, 8 for the length less one.
        links: by node, where the trie goes on when it has no child for the next byte.
        pops: by node, which part of `pool` has the codes of the tokens that end then: 24 bits for its start, 8 for its length less one.
        pool: the codes of these tokens.
        suffix_root: the node behind the suffix indicator.
        punctuation_end: the node to which punctuation leads on.
        longest: the bytes of a word above which it is unknown.
        suffix: the suffix indicator, "##".
        suffix_alone: the codes of the tokens of the suffix indicator itself.
        unknown: the number of the unknown token.
        unknown_token: the unknown token.
        end_to_end: whether texts are given, to be parted at white space and punctuation; single words otherwise.
        across_spaces: whether tokens have white space, so that texts must not be parted there before they are cut.
        texts: the text of tokens that were found before: by twice the code, and one more where it follows another token of its word.
        plain_suffix: whether a text can contain the suffix indicator as a part of a word.
    """

    def __init__(self, buffer: bytes) -> None:
        table = FlatTable(buffer, "the WordPiece vocabulary")
        self.trie = DoubleArray(table.vector(0, np.uint32))
        ensure(len(self.trie.array), "the WordPiece vocabulary has no trie.")
        failures = table.vector(1, np.dtype([("link", "<u4"), ("pops", "<u4")]))
        self.links, self.pops = failures["link"], failures["pops"]
        self.pool = table.vector(2, np.int32)
        self.suffix_root: int = table.number(3, "I")
        ensure(
            self.suffix_root < len(self.trie.array),
            lambda: f"the WordPiece vocabulary goes on at node {self.suffix_root} of a trie of {len(self.trie.array)} nodes.",
        )
        self.longest: int = table.number(4, "i")
        self.suffix, self.unknown_token = table.string(5), table.string(6)
        self.unknown: int = table.number(7, "i")
        self.suffix_alone: list[int] = table.vector(8, np.int32).tolist()
        self.punctuation_end: int = table.number(9, "I")
        self.end_to_end = bool(table.number(10, "?"))
        self.across_spaces = self.end_to_end and self.trie.has_before(WHITE_SPACES)
        self.texts: dict[int, bytes] = {}
        marks = any(kind_of(character) == PUNCTUATION for character in characters(self.suffix))
        self.plain_suffix = bool(self.suffix) and not (self.end_to_end and marks)
