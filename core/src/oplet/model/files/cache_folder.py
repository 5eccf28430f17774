"""Cache folder: what takes long to compute is kept there between runs, such as choices of engines and plans.

What is read back is trusted, and plans decide what is run; so the folder is one of the user's own.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from oplet.model.files.own_folder import OwnFolder

__all__ = ["FOLDER_VARIABLE", "CacheFolder", "cache_folder"]

#: The environment variable that names oplet's cache folder.
FOLDER_VARIABLE = "OPLET_CACHE_DIR"


def cache_folder() -> str:
    """Return the path of oplet's cache folder, "" where the user has none.

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


class CacheFolder(OwnFolder):
    """A subfolder of oplet's cache folder, whose files only the user can write.

    Args:
        name: the folder's name, such as "plans".
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def path(self) -> str:
        """The folder's path, by the present environment variables; "" where the user has no cache folder."""
        folder = cache_folder()
        return folder and os.path.join(folder, self._name)

    def make(self) -> None:
        path = self.path
        if not path:
            raise FileNotFoundError(errno.ENOENT, f"the user has no cache folder; name one with {FOLDER_VARIABLE}")
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        super().make()

    def keep_newest(self, start: str, end: str, most: int, most_bytes: int = sys.maxsize) -> None:
        """Remove the oldest files while there are too many; other processes may do the same at the same time.

        Args:
            start: what the names of the files begin with.
            end: what they end with.
            most: how many files may stay.
            most_bytes: how many bytes they may have together.
        """
        found = []
        with suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.startswith(start) and entry.name.endswith(end):
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        found.append((status.st_mtime_ns, status.st_size, entry.path))
        total = 0
        for number, (_, size, path) in enumerate(sorted(found, reverse=True)):
            total += size
            if number >= most or total > most_bytes:
                with suppress(OSError):
                    os.unlink(path)
