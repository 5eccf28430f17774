"""Replacement of the matches of RE2's regular expressions: GlobalReplace, Replace and Rewrite in re2/re2.cc."""

from __future__ import annotations

from typing import Any

from oplet.kernels.strings import StringMeter, foresee_match

__all__ = ["Rewrite", "read_rewrite", "replace_all", "replace_first"]

#: A replacement: bytes, and numbers of groups whose matches go there.
Rewrite = list[Any]
#: Pieces of a text that are joined at a time, and what a match counts for in looks at the clock by bytes.
_MANY, _MATCH = 1 << 14, 1024
#: Bytes that `bytes.join` holds for each piece.
_PIECE = 80


def read_rewrite(rewrite: bytes) -> tuple[Rewrite, bool]:
    r"""Parse a replacement; return its parts up to the first error, and whether all of it was valid.

    `\0` to `\9` are groups, `\\` is a backslash; other escapes are errors.
    """
    parts: Rewrite = []
    at = 0
    while (found := rewrite.find(b"\\", at)) >= 0:
        parts.append(rewrite[at:found])
        escaped = rewrite[found + 1 : found + 2]
        if escaped == b"\\":
            parts.append(escaped)
        elif escaped.isdigit():
            parts.append(int(escaped))
        else:
            return parts, False
        at = found + 2
    parts.append(rewrite[at:])
    return parts, True


def replace_all(pattern: Any, rewrite: bytes, text: bytes, meter: StringMeter) -> bytes:
    """Replace every match of `pattern` by `rewrite`; return the text unchanged if `rewrite` has a group that `pattern` lacks."""
    parts, _ = read_rewrite(rewrite)
    if _largest_group(rewrite) > pattern.groups:
        return text
    whole, made = bytearray(), []
    at, last = 0, -1
    meter.read(len(text))
    meter.add(len(text))
    while at <= len(text):
        foresee_match(pattern, len(text) - at)  # each search may read all that is left
        match = pattern.search(text, at)
        if match is None:
            break
        start, end = match.span()
        meter.read(_MATCH)
        made.append(text[at:start])
        if start == end == last:  # an empty match right after a match is none: one character on
            step = _character(text, at)
            made.append(text[at : at + step])
            at += step
            continue
        _expand(parts, match, made, meter)
        at = last = end
        if len(made) > _MANY:
            whole += b"".join(made)
            made = []
    made.append(text[at:])
    meter.hold(len(whole) + sum(map(len, made)) + _PIECE * len(made))
    if not whole:
        return b"".join(made)
    for piece in made:
        whole += piece
    return bytes(whole)


def replace_first(pattern: Any, rewrite: bytes, text: bytes, meter: StringMeter) -> bytes:
    """Replace the first match of `pattern` by `rewrite`; return the text unchanged if `rewrite` is invalid."""
    parts, valid = read_rewrite(rewrite)
    meter.read(len(text))
    foresee_match(pattern, len(text))
    match = pattern.search(text) if valid and _largest_group(rewrite) <= pattern.groups else None
    if match is None:
        return text
    start, end = match.span()
    meter.add(len(text))
    made = [text[:start]]
    _expand(parts, match, made, meter)
    made.append(text[end:])
    meter.hold(_PIECE * len(made) + sum(map(len, made)))
    return b"".join(made)


def _expand(parts: Rewrite, match: Any, made: list[bytes], meter: StringMeter) -> None:
    """Append a match's replacement to `made`, counted as often as it is copied. A group that occurs repeatedly is one shared object."""
    groups = {part: match.group(part) or b"" for part in parts if isinstance(part, int)}
    expanded = [part if isinstance(part, bytes) else groups[part] for part in parts]
    meter.add(sum(map(len, expanded)), 0)
    made += expanded


def _largest_group(rewrite: bytes) -> int:
    """Return the largest group number that the replacement names, even if it has errors."""
    largest = at = 0
    while (found := rewrite.find(b"\\", at)) >= 0:
        escaped = rewrite[found + 1 : found + 2]
        if escaped.isdigit():
            largest = max(largest, int(escaped))
        at = found + 2
    return largest


def _character(text: bytes, at: int) -> int:
    """Return the byte length of the UTF-8 character at a position; 1 if it is not valid."""
    first = text[at] if at < len(text) else 0
    size = 1 if first < 0xC2 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4 if first < 0xF5 else 1
    try:
        text[at : at + size].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return 1
    return size
