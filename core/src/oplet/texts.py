"""Sanitizing of untrusted text for messages: printable, in one line, of a readable length.

Names in files and messages of other packages are untrusted. All messages, warnings, log records and tables of oplet go through `plain`;
`oplet.errors.OpletError` applies it by itself. Data is not changed: names in `get_tensor_details()`, in signatures and in `Model.root`
are those of the file.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging
    from collections.abc import Sequence

__all__ = ["LONGEST", "counted", "logger_of", "one_line", "plain", "shown", "version_ranges"]

#: The most characters of a message; a longer one loses its middle.
LONGEST = 8000

#: The most characters of a name in a message, and how many of them are taken from its end.
_NAME, _END = 100, 40


def plain(text: str, longest: int = 0) -> str:
    r"""Escape everything in the text that is not printable (`str.isprintable`).

    Escaped are control characters, terminal escapes, changes of direction and other formatting, separators of lines and paragraphs,
    and lone surrogates. Letters of every script stay. The result can be encoded in UTF-8.

    Args:
        text: any string.
        longest: the most characters of the result, beyond which its middle is left out; 0 for no limit, else at least 100.

    Examples:
        >>> print(plain("a" + chr(10) + chr(0x202E) + chr(27) + "[31mé字"))
        a\n\u202e\x1b[31mé字
    """
    if type(text) is not str:  # a subclass, whose methods are untrusted
        text = str.__str__(text)
    if longest and len(text) > longest:
        text = _without_middle(text, longest)
    if text.isprintable():
        return text
    text = "".join(c if c.isprintable() else _escaped(c) for c in text)
    return _without_middle(text, longest) if longest and len(text) > longest else text


def one_line(text: str, longest: int = 0) -> str:
    """Sanitize the text as `plain` does, in one line: line breaks and other white space become single spaces."""
    if type(text) is not str:
        text = str.__str__(text)
    if longest and len(text) > 4 * longest:  # splitting all of a huge text is a waste
        text = plain(text, 4 * longest)
    return plain(" ".join(text.split()), longest)


def shown(name: str | None) -> str:
    r"""Format a name for messages: escaped as by `plain`, and without its middle if it is longer than 100 characters.

    Examples:
        >>> shown("conv/bias")
        'conv/bias'
        >>> print(shown("a" + chr(10) + chr(0)))
        a\n\x00
    """
    if not name:
        return ""
    if len(name) <= _NAME:
        return plain(name)
    return f"{plain(name[: _NAME - _END])}...{plain(name[-_END:])} ({len(name)} characters)"


def _without_middle(text: str, longest: int) -> str:
    kept = longest // 2 - 20
    return f"{text[:kept]} [... {len(text) - 2 * kept} characters ...] {text[-kept:]}"


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as `surrogateescape` decodes it
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


class _Plain:
    """Logging filter that escapes what is not printable in every message, by `plain`."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text = record.getMessage()
        except Exception:  # logging itself reports a record that cannot be formatted
            return True
        record.msg, record.args = plain(text, LONGEST), None
        return True


@functools.cache
def logger_of(name: str) -> logging.Logger:
    """Return the logger of that name, with a filter that escapes unprintable characters in all messages (`plain`)."""
    import logging  # imported late: running a model does not need it

    logger = logging.getLogger(name)
    logger.addFilter(_Plain())
    return logger


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: "1 tensor", "2 tensors"."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def version_ranges(versions: Sequence[int]) -> str:
    """Return sorted versions as text: "version 3", "versions 1 to 4", "versions 1, 3"."""
    all_between = len(versions) > 1 and versions[-1] - versions[0] == len(versions) - 1
    listed = f"{versions[0]} to {versions[-1]}" if all_between else ", ".join(map(str, versions))
    return f"version{'s' * (len(versions) > 1)} {listed}"
