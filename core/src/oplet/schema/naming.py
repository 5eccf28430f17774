"""Names from a model file, as messages show them."""

from __future__ import annotations

__all__ = ["shown"]

#: Characters of a name that a message shows.
_LONGEST = 100


def shown(name: str | None) -> str:
    """A stranger's name in a form that fits into a line: cut if it is long, escaped where it cannot be printed.

    Example:
        >>> shown("conv/bias")
        'conv/bias'
        >>> print(shown("a" + chr(10) + chr(0)))
        a\\x0a\\x00
    """
    if not name:
        return ""
    text = name if len(name) <= _LONGEST else name[:_LONGEST]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else _escaped(c) for c in text)
    return text if len(name) <= _LONGEST else f"{text}... ({len(name)} characters)"


def _escaped(character: str) -> str:
    try:
        return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # half of a pair, which no file holds but a program may hand in
        return f"\\u{ord(character):04x}"
