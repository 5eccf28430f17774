"""A model's graph as a self-contained page for a browser: cytoscape draws it, dagre lays it out, nothing is loaded from elsewhere."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict
from html import escape
from pathlib import Path
from string import Template

from oplet.texts import shown
from oplet.toolkit import open_file
from oplet_tools.describing.exploring.graph import ExploredModel

__all__ = ["explore_page", "is_explore_page"]

_TEMPLATES = Path(__file__).parent / "templates"
#: Libraries, and the licences that go with them into each page; `scripts/vendored.py` fetches both.
_VENDORED = Path(__file__).parent / "vendored"
_LIBRARIES = ("dagre", "cytoscape")
#: What each page begins with, by which it is known as one.
_GENERATOR = '<meta name="generator" content="oplet explore">'
_HEAD = 1024


def explore_page(model: ExploredModel) -> str:
    """Make the HTML page of a model's graph. The model's texts are embedded as data, so that no name can end a script."""
    return Template(_read(_TEMPLATES / "explore.html")).substitute(
        generator=_GENERATOR,
        title=escape(f"oplet explore: {shown(os.path.basename(model.file))}"),
        model=_data(model),
        libraries="\n".join(
            f"/*! {name}:\n{_read(_VENDORED / f'{name}.LICENSE.txt')}*/\n{_read(_VENDORED / f'{name}.min.js')}"
            for name in _LIBRARIES
        ),
        script=_read(_TEMPLATES / "explore.js"),
    )


def is_explore_page(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a page that `explore_page` made; a link to one is none.

    Raises:
        OSError: the file cannot be read.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return False
    with open_file(path) as file:
        return _GENERATOR.encode() in file.read(_HEAD)


def _data(model: ExploredModel) -> str:
    text = json.dumps(asdict(model), separators=(",", ":"))
    # In a script element HTML looks for "</script" and "<!--" even inside of strings.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
