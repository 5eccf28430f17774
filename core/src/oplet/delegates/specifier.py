"""Delegate specifiers, such as "NAME:key=value", in command lines and configuration."""

from __future__ import annotations

import shlex

from oplet.errors import DelegateError

__all__ = ["AUTO", "is_auto", "parse_delegate"]

#: The specifier that lets oplet choose the delegates.
AUTO = "auto"


def is_auto(text: str) -> bool:
    """Whether a specifier is "auto", with or without options, so that oplet chooses the delegates."""
    return text == AUTO or text.startswith(f"{AUTO}:")


def parse_delegate(text: str) -> tuple[str, dict[str, str]]:
    """Parse a delegate specifier into the delegate's name and its options.

    Args:
        text: "NAME" or "NAME:key=value,key=value". NAME ends at the last colon before the first "=", so that it may be
            "distribution:name". Values may contain colons and "=". A value that contains commas or quotes, or that begins or ends with
            a space, is put in quotes (of the other kind). A backslash has no special meaning.

    Raises:
        DelegateError: the text is malformed.

    Examples:
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
