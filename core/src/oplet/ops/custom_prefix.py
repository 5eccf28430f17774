"""Families of custom ops: all those whose names begin alike."""

from __future__ import annotations

from oplet.records import Record

__all__ = ["CustomPrefix", "matches"]


class CustomPrefix(Record):
    """The key, in resolvers, of a family of custom ops whose names have one prefix.

    Attributes:
        prefix: the prefix of the names, such as "Flex".
    """

    prefix: str

    @property
    def name(self) -> str:
        """The prefix with an asterisk, as tables and messages show the family."""
        return f"{self.prefix}*"

    def __str__(self) -> str:
        return self.name


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern, an op's name or a prefix with an asterisk, matches the op `name`."""
    return pattern == name or (pattern.endswith("*") and name.startswith(pattern[:-1]))
