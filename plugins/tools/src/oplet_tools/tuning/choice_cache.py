"""The cache of choices: one JSON file each in the user's cache folder, named by a hash of all that the choice depends on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import CacheFolder
from oplet.errors import text_of
from oplet.texts import logger_of
from oplet.toolkit import FOLDER_VARIABLE, cache_folder

if TYPE_CHECKING:
    from oplet import Model, PluginManager

__all__ = ["choice_file", "choice_key", "load_choice", "store_choice", "stored_file"]

logger = logger_of("oplet.tuning")

#: The distribution's name at the beginning of a requirement (PEP 508).
_NAME = re.compile(r"[\w.-]+")

#: Version of the cache format.
_FORMAT = 4

_FOLDER = CacheFolder("choices")

#: What no file could be written for, by the file: this process measures no model twice, and is told once why the next one will.
_unwritten: dict[str, dict[str, Any]] = {}

#: The largest cache file that is read, in bytes; a choice among a hundred candidates takes a tenth of it.
_LARGEST = 1 << 20


def choice_key(model: Model, manager: PluginManager, version: str, **settings: Any) -> dict[str, Any]:
    """Return the cache key: the model's hash, the machine, the versions of all installed engines, and the settings.

    Args:
        version: oplet's version.
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
    """Return the path of a key's cache file; "" if the user has no cache folder."""
    return _FOLDER.path and os.path.join(_FOLDER.path, _name(key))


def stored_file(key: Mapping[str, Any]) -> str:
    """Return the path of a key's cache file; "" if it could not be written, so that the choice is remembered in this process only."""
    path = choice_file(key)
    return "" if (path or _name(key)) in _unwritten else path


def _name(key: Mapping[str, Any]) -> str:
    text = json.dumps(key, sort_keys=True)
    return f"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.json"


def load_choice(key: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the content stored under a key (in this process, if it could not be written); None if there is none or it is not trusted."""
    with suppress(OSError, ValueError, RecursionError, MemoryError), _FOLDER.open(_name(key)) as file:
        stored = file.read(_LARGEST + 1)
        content = json.loads(stored.decode("utf-8")) if len(stored) <= _LARGEST else None
        if isinstance(content, dict) and content.get("key") == json.loads(json.dumps(key)):
            return content
    return _unwritten.get(choice_file(key) or _name(key))


def store_choice(key: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Store content under a key; a warning is logged where that is impossible.

    Returns:
        The file's path, "" if it could not be written.
    """
    path = choice_file(key)
    if not path:
        _unwritten[_name(key)] = dict(content)
        logger.warning(
            "The choice for this model cannot be remembered, the next program measures again: there is no home folder; name one "
            "with %s.",
            FOLDER_VARIABLE,
        )
        return ""
    try:
        # Two processes may tune one model at once: each writes a temporary file and renames it.
        with _FOLDER.replace(_name(key)) as file:
            file.write(json.dumps({"key": dict(key), **content}, indent=1).encode("utf-8"))
    except OSError as error:
        _unwritten[path] = dict(content)
        logger.warning(
            "The choice for this model cannot be remembered in '%s', the next program measures again: %s; name a folder that can be "
            "written with %s.",
            cache_folder(),
            error.strerror or text_of(error),
            FOLDER_VARIABLE,
        )
        return ""
    _unwritten.pop(path, None)
    return path


def _versions(distributions: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages and of what they require, which brings the engines (openvino, tensorflow, ...)."""
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
