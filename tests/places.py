"""Where tests find what they read: the repository, its pages and examples, and the recorded cases beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["CONFORMANCE", "EXAMPLES", "REAL", "ROOT", "SHARED", "SWEEP", "name_of"]

#: The repository.
ROOT = Path(__file__).resolve().parents[1]
#: Facts about LiteRT and recorded cases, which do not belong to the repository.
SHARED = ROOT.parent / "shared"
#: Models of one operator or a few, with inputs and the answers that LiteRT gave.
CONFORMANCE = SHARED / "conformance"
#: Models of real projects, with the answers that LiteRT gave.
REAL = CONFORMANCE / "real"
EXAMPLES = ROOT / "examples"

#: The longest sweeps run one case in so many; with OPLET_EVERY_CASE in the environment all of them, which takes an hour.
SWEEP = 1 if os.environ.get("OPLET_EVERY_CASE") else 10


def name_of(folder: Path) -> str:
    """The name of the package of the repository in this folder."""
    found = re.search(r'^name = "(.+)"$', (folder / "pyproject.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]
