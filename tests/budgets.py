"""How many examples property tests draw: a fixed number of the same ones by default, more and new ones with `--hypothesis-profile=random`."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]

#: What Hypothesis draws where nothing is said, and the profile that is loaded by default.
_USUAL = 100


def examples(count: int) -> int:
    """The examples of a test that draws `count` in the default profile, for `settings(max_examples=...)`."""
    return max(1, count * settings.default.max_examples // _USUAL)
