"""The folder in which oplet keeps between runs what takes long to find out."""

from __future__ import annotations

import os
import sys

__all__ = ["FOLDER_VARIABLE", "cache_folder", "make_private"]

#: The environment variable that names oplet's cache folder.
FOLDER_VARIABLE = "OPLET_CACHE_DIR"


def cache_folder() -> str:
    """The path of oplet's cache folder, "" where the user has none.

    Relative paths are ignored, as the XDG specification asks: they would lead into the current folder, which may be a stranger's.
    """
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return given
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        places = [os.environ.get("LOCALAPPDATA", ""), home]
    elif sys.platform == "darwin":
        places = [os.path.join(home, "Library", "Caches")]
    else:
        places = [os.environ.get("XDG_CACHE_HOME", ""), os.path.join(home, ".cache")]
    return next((os.path.join(place, "oplet") for place in places if os.path.isabs(place)), "")


def make_private(folder: str) -> None:
    """Make a folder in the cache folder, and that one, if need be: only the user may write there, since what is read back decides what runs.

    Raises:
        OSError: it cannot be made.
    """
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
