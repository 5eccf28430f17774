"""Record the models again: `python -m plugins.flex_ops.tests.record [module ...]`."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

_OTHER = ("__init__", "__main__", "recording")


def main(modules: list[str]) -> None:
    """Record the models of the named modules of this folder, or of all."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    here = Path(__file__).parent
    for module in modules or sorted(path.stem for path in here.glob("*.py") if path.stem not in _OTHER):
        importlib.import_module(f"plugins.flex_ops.tests.record.{module}").record_all()


main(sys.argv[1:])
