"""Sentence fragments: parts of documents that end with terminal punctuation marks, then closing brackets.

An end begins with a terminal mark, an ellipsis, an acronym or an emoticon, and goes on as long as terminal marks, emoticons and
closing brackets follow each other directly (after a bracket, of the marks only ellipses). White space before a fragment is
skipped by single bytes, as in the C++: of a white space character of several bytes, all but the first belong to the fragment.

Numerics: sentence_fragmenter_v2.cc of tensorflow/text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from oplet import checkpoint
from oplet.kernels.limits import paced
from oplet_text_ops.sentences.marks import ACRONYM, CLOSING, ELLIPSIS, EMOTICON, TERMINAL, WHITE

__all__ = ["Fragment", "fragments"]

_ELLIPSIS, _EMOTICON, _CLOSING, _WHITE = map(re.compile, (ELLIPSIS, EMOTICON, CLOSING, WHITE))
_TERMINAL = re.compile(ELLIPSIS + b"|" + TERMINAL)
#: What begins the end of a fragment, with what counts first where more than one fits.
_BEGIN = re.compile(b"|".join((EMOTICON, ACRONYM, ELLIPSIS, TERMINAL)))
#: Marks of which a second one makes a sentence's end sure: punctuation, and the signs that count as such.
_PUNCTUATION = re.compile(rb"[!-#%-*,-/:-<>-@\[-\]_`{}~]|" + TERMINAL)

_ENDED, _MORE, _CLOSED = 1, 2, 4
#: Bytes of a window, and more than two acronyms or the longest mark have.
_WINDOW, _MOST = 1 << 16, 64


class Fragment(NamedTuple):
    """A fragment of a document, which ends where a sentence may end.

    Attributes:
        start: the offset of its first byte in the document.
        end: the offset of the byte behind its last one.
        properties: a sum of flags: 1 (it ends with terminal punctuation), 2 (with several marks), 4 (with a closing bracket).
        terminal: the offset in the document of its terminal punctuation; -1 where it has none.
    """

    start: int
    end: int
    properties: int
    terminal: int


class _End(NamedTuple):
    """The end of a fragment: position of its first terminal mark, start of the closing brackets, and end."""

    terminal: int
    closing: int
    limit: int


def fragments(document: bytes) -> list[Fragment]:
    """Split a document into fragments, without the white space between them."""
    found, start = [], 0
    while start < len(document):
        checkpoint()
        if _WHITE.match(document, start):
            start += 1
            continue
        end = _next_end(document, start)
        if end is None:
            found.append(Fragment(start, len(document), 0, -1))
            break
        properties = _ENDED
        if _has_more(document, end):
            properties += _MORE
        if _CLOSING.search(document, end.closing, end.limit):
            properties += _CLOSED
        found.append(Fragment(start, end.limit, properties, _terminal(document, end)))
        start = end.limit
    return found


def _next_end(document: bytes, start: int) -> _End | None:
    """Find the end of the fragment that begins at `start`; None if it reaches the document's end."""
    begin = _begin(document, start)
    if begin is None:
        return None
    at = closing = begin.end()
    closed = False
    while at < len(document):
        checkpoint()
        emoticon, bracket, mark = (pattern.match(document, at) for pattern in (_EMOTICON, _CLOSING, _TERMINAL))
        found = emoticon or bracket or mark
        if found is None or (closed and not emoticon and not bracket and not _ELLIPSIS.match(document, at)):
            break
        if not closed and not emoticon and not mark:
            closed, closing = True, at
        at = found.end()
        if not closed:
            closing = at
    return _End(begin.start(), closing, at)


def _begin(document: bytes, start: int) -> re.Match[bytes] | None:
    """Search for what begins an end, a window at a time: each byte takes up to a microsecond."""
    for at in paced(range(start, len(document), _WINDOW), 1):
        found = _BEGIN.search(document, at, at + _WINDOW + _MOST)
        if found is not None and found.start() < at + _WINDOW:
            return _BEGIN.match(document, found.start())
    return None


def _has_more(document: bytes, end: _End) -> bool:
    """Return whether a second terminal mark (no ellipsis or emoticon) follows the first."""
    at = end.terminal + _beyond(document, end.terminal) + 1
    while at < end.closing:
        checkpoint()
        beyond = _beyond(document, at)
        if _PUNCTUATION.match(document, at) and not (_ELLIPSIS.match(document, at) or _EMOTICON.match(document, at)):
            return True
        at += beyond + 1
    return False


def _beyond(document: bytes, at: int) -> int:
    """Return how many bytes an ellipsis or emoticon at `at` has behind its first byte; 0 if there is none."""
    return sum(found.end() - at - 1 for found in (_ELLIPSIS.match(document, at), _EMOTICON.match(document, at)) if found)


def _terminal(document: bytes, end: _End) -> int:
    """Return the offset of the terminal mark to report.

    It is that of the last ellipsis or emoticon behind the first terminal mark, if there is one and the closing brackets do not
    begin with it; else that of the first mark.
    """
    for at in paced(range(end.closing, end.terminal, -1)):
        if _ELLIPSIS.match(document, at) or _EMOTICON.match(document, at):
            return end.terminal if at == end.closing else at
    return end.terminal
