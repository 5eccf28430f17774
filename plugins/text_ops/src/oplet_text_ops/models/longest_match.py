"""WordPiece for many words at once: greedy longest match from left to right, vectorized over the words.

For the vocabularies that TensorFlow Text builds the tokens are those of its linear algorithm, which exists to find them faster one by one.
What that algorithm treats in a way of its own is left to `linear_cut`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import checkpoint
from oplet.kernels.strings import StringMeter
from oplet_text_ops.models.linear_cut import cut
from oplet_text_ops.models.pieces import Columns, Piece
from oplet_text_ops.models.wordpiece import WordpieceModel
from oplet_text_ops.texts.code_points import PLAIN, PUNCTUATION, WHITE_SPACE, kinds
from oplet_text_ops.texts.utf8 import Joined, decode

__all__ = ["cut_all"]

Array = NDArray[Any]
#: Bytes of a word above which the linear algorithm is used, and of a character, below which a limit parts characters.
_LONG, _CHARACTER = 256, 4


class _Runs(NamedTuple):
    """Units that are tokenized separately, words and punctuation marks: start, end, owning text, whether a mark."""

    starts: Array
    ends: Array
    rows: Array
    marks: Array


def cut_all(model: WordpieceModel, texts: Sequence[bytes]) -> Columns:
    """Tokenize texts, or single words if the model is not end-to-end, by longest match, many words at a time."""
    if model.across_spaces or model.longest < _CHARACTER:
        meter = StringMeter()
        return _columns([cut(model, text, meter) for text in texts])
    joined = Joined(texts)
    runs = _runs(joined, model.end_to_end)
    sizes = runs.ends - runs.starts
    hard = (sizes > _LONG) & (sizes <= model.longest)
    short = np.flatnonzero((sizes <= model.longest) & ~hard)
    token_runs, starts, ends, codes, failed = _match(model, joined.data, runs.starts[short], runs.ends[short])
    unknown = sizes > model.longest
    unknown[short[failed]] = True
    hard |= unknown & runs.marks
    special: set[int] = set()
    for sign in (b"\0", model.suffix) if model.plain_suffix else (b"\0",):
        if sign in joined.data:
            special.update(index for index, text in enumerate(texts) if sign in text)
    special.update(runs.rows[hard].tolist())
    token_runs = short[token_runs]
    kept = ~unknown[token_runs]
    lost = np.flatnonzero(unknown)
    # An unknown word is one token, and has no code.
    token_runs = np.concatenate([token_runs[kept], lost])
    starts, ends = np.concatenate([starts[kept], runs.starts[lost]]), np.concatenate([ends[kept], runs.ends[lost]])
    codes = np.concatenate([codes[kept], np.full(len(lost), -1)])
    order = np.argsort(starts, kind="stable")
    return _put_together(model, joined, runs, special, token_runs[order], starts[order], ends[order], codes[order])


def _put_together(
    model: WordpieceModel,
    joined: Joined,
    runs: _Runs,
    special: set[int],
    token_runs: Array,
    starts: Array,
    ends: Array,
    codes: Array,
) -> Columns:
    """Combine the matched tokens to columns, in order; retokenize the texts in `special` by the linear algorithm.

    Args:
        special: indices of texts.
        token_runs: for each token the index of its run in `runs`.
        starts, ends: the tokens' bytes in the joined texts.
        codes: what the trie has for each token; -1 for a word that is the unknown token.
    """
    data, numbers = joined.data, np.where(codes < 0, model.unknown, codes >> 8 & 0x3FFFFF)
    keys = 2 * codes + (starts > runs.starts[token_runs])
    try:
        pieces = list(map(model.texts.__getitem__, keys.tolist()))
    except KeyError:
        _name_tokens(model, data, keys, numbers, starts, ends)
        pieces = list(map(model.texts.__getitem__, keys.tolist()))
    rows = runs.rows[token_runs]
    shift = joined.starts[rows]
    starts, ends = starts - shift, ends - shift
    if special:
        anew = sorted(special)
        bounds = joined.starts.tolist()
        meter = StringMeter()
        others = _columns([cut(model, data[bounds[row] : bounds[row + 1] - 1], meter) for row in anew])
        kept = np.flatnonzero(~np.isin(rows, anew))
        rows = np.concatenate([rows[kept], np.repeat(anew, others.counts)])
        order = np.argsort(rows, kind="stable")
        pieces = [pieces[place] for place in kept.tolist()] + others.texts
        pieces = [pieces[place] for place in order.tolist()]
        numbers, starts, ends = (
            np.concatenate([column[kept], more])[order]
            for column, more in ((numbers, others.numbers), (starts, others.starts), (ends, others.ends))
        )
    return Columns(pieces, numbers, starts, ends, np.bincount(rows, minlength=len(joined.starts) - 1))


def _name_tokens(model: WordpieceModel, data: bytes, keys: Array, numbers: Array, starts: Array, ends: Array) -> None:
    """Store each token's text in `model.texts` by its key: twice its code, plus one if it follows another token of its word."""
    _, places = np.unique(keys, return_index=True)
    meter = StringMeter()
    for key, number, start, end in zip(*(column[places].tolist() for column in (keys, numbers, starts, ends))):
        piece = model.unknown_token if number == model.unknown else data[start:end]
        meter.add(len(model.suffix) + len(piece))
        model.texts[key] = model.suffix + piece if key & 1 and key > 0 else piece


def _columns(rows: Sequence[Sequence[Piece]]) -> Columns:
    flat = [piece for row in rows for piece in row]
    numbers = np.array([piece[1:] for piece in flat], np.int64).reshape(len(flat), 3)
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    return Columns([piece[0] for piece in flat], numbers[:, 0], numbers[:, 1], numbers[:, 2], counts)


def _runs(joined: Joined, parted: bool) -> _Runs:
    """Split the texts into words and marks; keep whole texts unless `parted`."""
    if not parted:
        full = np.flatnonzero(np.diff(joined.starts) > 1)
        return _Runs(joined.starts[full], joined.starts[full + 1] - 1, full, np.zeros(len(full), bool))
    begins, points = decode(joined.data)
    kind = kinds()[points]
    kind[np.searchsorted(begins, joined.line_feeds)] = WHITE_SPACE
    before = np.concatenate([[WHITE_SPACE], kind[:-1]])
    first = np.flatnonzero((kind == PUNCTUATION) | ((kind == PLAIN) & (before != PLAIN)))
    last = np.flatnonzero((before == PUNCTUATION) | ((before == PLAIN) & (kind != PLAIN)))
    starts = begins[first]
    rows = np.searchsorted(joined.starts, starts, side="right") - 1
    return _Runs(starts, begins[last], rows, kind[first] == PUNCTUATION)


def _match(model: WordpieceModel, data: bytes, starts: Array, ends: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Match each run greedily: return run number, start, end and code of every token, and the runs with an unmatched rest.

    All runs take a step of the trie at a time. A run whose trie ends goes back to behind its last piece.
    """
    codes, trie = np.frombuffer(data, np.uint8), model.trie
    left = np.arange(len(starts))  # the runs that are not done
    nodes, places, begins = np.zeros(len(starts), np.int64), starts.copy(), starts.copy()
    best_ends, best = np.full(len(starts), -1), np.zeros(len(starts), np.int64)
    ends = ends.copy()
    found: list[tuple[Array, ...]] = []
    failed: list[Array] = []
    while len(left):
        checkpoint()
        children = trie.steps(nodes, codes[np.minimum(places, len(codes) - 1)])
        on = (children >= 0) & (places < ends)
        nodes = np.where(on, children, nodes)
        places = places + on
        values = trie.values(nodes)
        new = on & (values >= 0)
        best_ends, best = np.where(new, places, best_ends), np.where(new, values, best)
        stopped = np.flatnonzero(~on | (places == ends))
        if not len(stopped):
            continue
        lost = best_ends[stopped] < 0
        failed.append(left[stopped[lost]])
        cut_off = stopped[~lost]
        found.append((left[cut_off], begins[cut_off], best_ends[cut_off], best[cut_off]))
        begins[cut_off] = places[cut_off] = best_ends[cut_off]
        nodes[cut_off] = model.suffix_root
        best_ends[cut_off] = -1
        done = np.zeros(len(left), bool)
        done[stopped[lost]] = True
        done[cut_off] = begins[cut_off] == ends[cut_off]
        keep = ~done
        left, nodes, places, begins, ends, best_ends, best = (
            each[keep] for each in (left, nodes, places, begins, ends, best_ends, best)
        )
    columns = [np.concatenate(column) for column in zip(*found)] if found else [np.zeros(0, np.int64)] * 4
    return columns[0], columns[1], columns[2], columns[3], np.concatenate(failed) if failed else np.zeros(0, np.int64)
