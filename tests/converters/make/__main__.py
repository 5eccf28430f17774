"""Make the models of one maker into a zip, without LiteRT's answers: `python -m tests.converters.make MAKER ZIP`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from ..cases import write_all


def main(maker: str, path: str) -> None:
    """Make them; what cannot be made ends the program."""
    found = [make() for _, make in importlib.import_module(f"{__package__}.{maker}").models()]
    write_all(Path(path), found)


if __name__ == "__main__":
    main(*sys.argv[1:])
