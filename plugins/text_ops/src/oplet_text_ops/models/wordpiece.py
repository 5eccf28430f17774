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
    """A WordPiece vocabulary as stored in a FastWordpieceTokenizer's config.

    Args:
        buffer: the FlatBuffer of the config.

    Attributes:
        trie: maps the bytes of a token to its code: bit 30 is set for a suffix, then 22 bits of id and 8 bits of length - 1.
        links: the failure link of each node: the node to continue from when there is no child for the next byte.
        pops: the slice of `pool` with the tokens to emit when a node's failure link is followed, for each node: 24 bits of start
            and 8 bits of length - 1.
        pool: the codes of the tokens that `pops` refers to.
        suffix_root: the node that the suffix indicator leads to.
        punctuation_end: the node that the failure links of punctuation marks lead to; it stands for the end of the word.
        longest: the most bytes of a word; a longer one is the unknown token.
        suffix: the suffix indicator, "##".
        suffix_alone: the codes of the tokens of a word that is just the suffix indicator.
        unknown: the id of the unknown token.
        unknown_token: the text of the unknown token.
        end_to_end: whether inputs are texts, to be split at white space and punctuation; single words otherwise.
        across_spaces: whether tokens contain white space, so that texts must not be split there before they are tokenized.
        texts: a cache of token texts; the key is twice a token's code, plus one for a token that is not the first of its word.
        plain_suffix: whether the suffix indicator can occur within a word of a text.
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
