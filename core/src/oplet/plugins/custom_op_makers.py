"""Programs that are known to leave custom ops of their own in model files, for advice in messages."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from oplet.ops.serving.provenance import matches

__all__ = ["Maker", "maker_of", "makers"]


class Maker(NamedTuple):
    """The tool that writes a family of custom ops, with advice for its files."""

    patterns: tuple[str, ...]  #: The ops' names, or prefixes with an asterisk.
    made: str  #: The tool that writes such ops, as the rest of a sentence that begins "X is what ...".
    remedy: str  #: What to do with such a file, as the rest of a sentence in the imperative.

    def sentence(self, op: str) -> str:
        """Return a sentence on which tool wrote a file with the op `op`, and what to do with the file."""
        return f"{op} is what {self.made}: {self.remedy}."


@lru_cache(maxsize=1)
def makers() -> tuple[Maker, ...]:
    """Return all known tools that write custom ops, from the table `custom_op_makers.txt`."""
    from pkgutil import get_data  # imported late: running a model does not need it

    rows = (get_data(__name__, "custom_op_makers.txt") or b"").decode().splitlines()
    fields = (row.split(" | ") for row in rows if row and not row.startswith("#"))
    return tuple(Maker(tuple(patterns.split()), made, remedy) for patterns, made, remedy in fields)


def maker_of(op: str) -> Maker | None:
    """Return the tool that writes the custom op `op`, with advice; None if it is not known."""
    return next((maker for maker in makers() if any(matches(pattern, op) for pattern in maker.patterns)), None)
