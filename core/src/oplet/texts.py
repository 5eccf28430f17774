"""Texts for people, made of names and sentences that strangers chose: printable, in one line, of a length that can be read.

All messages, warnings, log records and tables of oplet go through `plain`, which `oplet.errors.OpletError` does by itself. What is
data stays as the file has it: the names in `get_tensor_details()`, in signatures and in `Model.root`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

__all__ = ["LONGEST", "counted", "logger_of", "one_line", "plain", "shown"]

#: Characters of a message, of which what is left out is in the middle.
LONGEST = 8000

#: Characters of a name that a message shows, and how many of them are from its end.
_NAME, _END = 100, 40


def plain(text: str, longest: int = 0) -> str:
    r"""The text without anything that a terminal, a log or a reader might obey: what cannot be printed is escaped.

    That is what `str.isprintable` says: control characters and escapes, changes of direction and other formatting, separators of
    lines and paragraphs, halves of surrogate pairs. Letters of every script stay. The answer has a form in UTF-8.

    Args:
        text: anything.
        longest: characters of the answer, above which its middle is left out; 0 for any number, else at least 100.

    Example:
        >>> print(plain("a" + chr(10) + chr(0x202E) + chr(27) + "[31mé字"))
        a\n\u202e\x1b[31mé字
    """
    if type(text) is not str:  # a stranger's class, whose methods may do anything
        text = str.__str__(text)
    if longest and len(text) > longest:
        text = _without_middle(text, longest)
    if text.isprintable():
        return text
    text = "".join(c if c.isprintable() else _escaped(c) for c in text)
    return _without_middle(text, longest) if longest and len(text) > longest else text


def one_line(text: str, longest: int = 0) -> str:
    """The text in one line, safe to print: line breaks and other white space become single spaces."""
    if type(text) is not str:
        text = str.__str__(text)
    if longest and len(text) > 4 * longest:  # not all of it is worth the splitting
        text = plain(text, 4 * longest)
    return plain(" ".join(text.split()), longest)


def shown(name: str | None) -> str:
    r"""A stranger's name in a form that fits into a line: escaped where it cannot be printed, without its middle if it is long.

    Example:
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
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


class _Plain:
    """Makes the message of every record plain."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text = record.getMessage()
        except Exception:  # logging itself tells of a record that cannot be formatted
            return True
        record.msg, record.args = plain(text, LONGEST), None
        return True


@functools.cache
def logger_of(name: str) -> logging.Logger:
    """The logger of that name, whose messages are plain whatever is in them."""
    import logging  # a program that only runs a model does not pay for it

    logger = logging.getLogger(name)
    logger.addFilter(_Plain())
    return logger


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 tensor", "2 tensors"."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
