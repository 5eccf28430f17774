"""Where tests find what they read: the repository, its pages and examples, and the recorded cases beside it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CONFORMANCE", "EXAMPLES", "REAL", "ROOT", "SHARED"]

#: The repository.
ROOT = Path(__file__).resolve().parents[1]
#: Facts about LiteRT and recorded cases, which do not belong to the repository.
SHARED = ROOT.parent / "shared"
#: Models of one operator or a few, with inputs and the answers that LiteRT gave.
CONFORMANCE = SHARED / "conformance"
#: Models of real projects, with the answers that LiteRT gave.
REAL = CONFORMANCE / "real"
EXAMPLES = ROOT / "examples"
