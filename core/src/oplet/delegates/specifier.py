"""Delegates as texts name them."""

from __future__ import annotations

import shlex

from oplet.errors import DelegateError

__all__ = ["AUTO", "is_auto", "parse_delegate"]

#: What stands in the place of delegates where oplet is to choose them.
AUTO = "auto"


def is_auto(text: str) -> bool:
    """Whether a text in the place of a delegate's name asks oplet to choose."""
    return text == AUTO or text.startswith(f"{AUTO}:")


def parse_delegate(text: str) -> tuple[str, dict[str, str]]:
    """A delegate's name and options.

    Args:
        text: "NAME" or "NAME:key=value,key=value". NAME ends at the last colon before the first "=", so that it may be
            "distribution:name"; values may have colons and "="; a value with commas, quotes or spaces at its ends stands in
            quotes of the other kind, a backslash is a character like any other.

    Raises:
        DelegateError: the text is malformed.

    Example:
        >>> parse_delegate("some-package:npu:cache=/tmp/a:b,cores='1,2'")
        ('some-package:npu', {'cache': '/tmp/a:b', 'cores': '1,2'})
    """
    if not text.strip(":"):
        raise DelegateError(f"'{text}' names no delegate; write NAME or NAME:key=value,...")
    before, equals, _ = text.partition("=")
    if not equals:
        return text, {}
    name = before.rpartition(":")[0]
    options = {}
    for option in _split(text, text[len(name) + 1 :]):
        key, equals, value = option.partition("=")
        if not name or not key or not equals:
            raise DelegateError(f"'{text}' is not of the form NAME[:key=value,...]; '{option}' is no option.")
        options[key] = value
    return name, options


def _split(text: str, options: str) -> list[str]:
    lexer = shlex.shlex(options, posix=True, punctuation_chars=False)
    lexer.whitespace, lexer.whitespace_split = ",", True
    lexer.commenters = lexer.escape = ""
    try:
        return list(lexer)
    except ValueError as error:
        raise DelegateError(f"'{text}' is not of the form NAME[:key=value,...]: {str(error).lower()}.") from error
