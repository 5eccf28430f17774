"""Choices that outlive the process: one small file each, named by all that the choice depends on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.errors import text_of
from oplet.model.files.atomic_write import write_atomically
from oplet.model.files.regular_files import read_file
from oplet.texts import logger_of

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.plugins.manager import PluginManager

__all__ = ["FOLDER_VARIABLE", "choice_file", "key_of", "recall", "remember"]

logger = logger_of("oplet.tuning")

#: The environment variable with the folder of all that oplet keeps between runs.
FOLDER_VARIABLE = "OPLET_CACHE_DIR"

#: The name that a requirement begins with (PEP 508).
_NAME = re.compile(r"[\w.-]+")

#: Version of the cache format.
_FORMAT = 2

#: Bytes of such a file; a choice among a hundred ways takes a tenth of it.
_LARGEST = 1 << 20


def key_of(model: Model, manager: PluginManager, version: str, **settings: Any) -> dict[str, Any]:
    """All that a choice depends on: the model, the machine, the versions of what could run it, and the settings.

    Args:
        version: oplet's.
    """
    return {
        "format": _FORMAT,
        "model": hashlib.blake2b(model.data, digest_size=20).hexdigest(),
        "machine": [platform.machine(), _processor(), os.cpu_count() or 0, _usable_cores()],
        "versions": {
            "python": platform.python_version(),
            "oplet": version,
            "numpy": np.__version__,
            **_versions({info.distribution for info in manager.plugins() if info.state == "loaded"}),
        },
        **settings,
    }


def choice_file(key: Mapping[str, Any]) -> str:
    """The path of the file that holds the choice of a key, "" where the user has no folder for it."""
    text = json.dumps(key, sort_keys=True)
    folder = _folder()
    return folder and os.path.join(folder, "choices", f"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.json")


def recall(key: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was remembered under this key, None if nothing was or the file is damaged."""
    path = choice_file(key)
    with suppress(OSError, ValueError, RecursionError, MemoryError):
        content = json.loads(read_file(path, _LARGEST).decode("utf-8")) if path else None
        if isinstance(content, dict) and content.get("key") == json.loads(json.dumps(key)):
            return content
    return None


def remember(key: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Write down what was found; where that is impossible, a warning says so.

    Returns:
        The file's path, "" if it could not be written.
    """
    path = choice_file(key)
    if not path:
        logger.warning(
            "The choice for this model cannot be remembered, the next interpreter measures again: there is no home folder; name one "
            "with %s.",
            FOLDER_VARIABLE,
        )
        return ""
    try:
        # What others may write into cannot be believed: a new folder is the user's alone.
        os.makedirs(os.path.dirname(os.path.dirname(path)), mode=0o700, exist_ok=True)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # Two processes may tune one model at once: each writes a file of its own and puts it in place whole.
        write_atomically(path, json.dumps({"key": dict(key), **content}, indent=1))
    except OSError as error:
        logger.warning(
            "The choice for this model cannot be remembered in '%s', the next interpreter measures again: %s; name a folder that can be "
            "written with %s.",
            _folder(),
            error.strerror or text_of(error),
            FOLDER_VARIABLE,
        )
        return ""
    return path


def _folder() -> str:
    """The folder of all that is kept, "" where there is none of the user's own.

    A place that is not absolute would lie in the current folder, which may be a stranger's; the specification of the variables for
    cache folders has such values ignored.
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


def _versions(distributions: Iterable[str]) -> dict[str, str]:
    """The versions of packages and of what they stand on, where the engines are (numba, openvino, ...)."""
    import importlib_metadata

    found: dict[str, str] = {}
    for name in distributions:
        with suppress(importlib_metadata.PackageNotFoundError):
            package = importlib_metadata.distribution(name)
            found[name] = package.version
            for requirement in package.requires or ():
                if "extra ==" in requirement:
                    continue
                needed = _NAME.match(requirement)
                if needed is not None:
                    with suppress(importlib_metadata.PackageNotFoundError):
                        found[needed[0]] = importlib_metadata.version(needed[0])
    return found


def _processor() -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0
