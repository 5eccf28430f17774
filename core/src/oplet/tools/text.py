"""Text from files, made safe to print: names in a model are chosen by whoever made it."""

from __future__ import annotations

__all__ = ["one_line", "plain"]


def plain(text: str) -> str:
    r"""The text with everything that a terminal might obey (control characters, changes of direction) as \x1b."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """The text in one line, safe to print."""
    return plain(" ".join(text.split()))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
