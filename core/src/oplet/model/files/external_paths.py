"""Paths of external files, whose names come from a model and are not trusted: which names are accepted, and where the files lie."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from oplet.errors import ModelError
from oplet.model.reading import MappedFile, map_file, open_regular
from oplet.texts import shown

__all__ = ["check_name", "locate", "missing_files", "open_external"]

#: Names of devices on Windows, which it recognizes with any extension and in any folder.
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])( *\..*| *)", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")

#: Extensions of files that other programs may execute because of where they are, as Python imports modules beside a script.
_CODE = (
    ".py", ".pyc", ".pyd", ".pyw", ".pyi", ".pth", ".so", ".dll", ".dylib", ".exe", ".com", ".bat", ".cmd", ".ps1", ".sh", ".lnk",
    ".desktop", ".app", ".jar", ".js", ".vbs", ".scr", ".msi",
)  # fmt: skip

#: Bytes that are compared at once.
_PIECE = 1 << 20

Content = bytes | bytearray | memoryview


def check_name(name: str, model: str, *, writing: bool = False) -> None:
    """Refuse the name of an external file that leads out of the model's folder or has a special meaning to an operating system.

    Args:
        name: the name in the model, with "/" between folders.
        model: the model's name in messages.
        writing: whether the file is to be written; extensions of code are then refused, too.

    Raises:
        ModelError: the name is refused.
    """
    reason = _fault(name) or (
        "ends as programs do, which others might run" if writing and name.lower().rstrip("/.").endswith(_CODE) else ""
    )
    if reason:
        raise ModelError(
            f"{model} refers to the external file '{shown(name)}', which would not lie in the model's own folder or is no plain name: "
            f"it {reason}; rename the file, and the external buffer group in the model."
        )


def _fault(name: str) -> str:
    """Return the reason to refuse a file name; "" if there is none."""
    import unicodedata

    parts = name.split("/")
    # Unprintable characters could deceive readers; spaces of other scripts count as unprintable in Python, and are accepted.
    if not name.isprintable() and not all(c.isprintable() or unicodedata.category(c) == "Zs" for c in name):
        return "has characters that are not to be printed, or is not UTF-8"
    if name.startswith("/"):
        return "is absolute"
    if "\\" in name:
        return "has a backslash"
    if _DRIVE.match(name) or (os.name == "nt" and ":" in name):
        return "begins with a drive letter or has a colon"
    if not any(part not in ("", ".") for part in parts):
        return "is empty"
    if name.endswith(("/", "/.")):
        return "is that of a folder"
    if ".." in parts:
        return "leads upwards with '..'"
    if any(part.startswith(".") and part != "." for part in parts):
        return "is hidden (begins with a dot)"
    if any(part != "." and part.endswith((".", " ")) for part in parts):
        return "ends in a dot or a space, which some systems drop"
    if any(map(_DEVICES.fullmatch, parts)):
        return "is reserved for a device"
    if any(len(part.encode()) > 255 for part in parts) or len(name.encode()) > 1024:
        return "is longer than a name of a file may be"
    return ""


def locate(folder: str, name: str, model: str, *, writing: bool = False) -> str:
    """Return the path of an external file, with symbolic links resolved.

    Args:
        folder: the model's folder, without symbolic links.
        name, model, writing: the file's name, the model's name in messages, and whether the file is to be written.

    Raises:
        ModelError: the name is refused, a symbolic link leads out of the folder, or the folder is the root of the file system.
    """
    check_name(name, model, writing=writing)
    if os.path.dirname(folder) == folder:
        raise ModelError(
            f"{model} lies in the root folder '{folder}' and refers to the external file '{shown(name)}': every file of the machine is "
            "inside that folder; move the model and its files into a folder of their own."
        )
    try:
        target = os.path.realpath(os.path.join(folder, *name.split("/")))
    except (OSError, ValueError) as error:
        raise ModelError(f"{model} refers to the external file '{shown(name)}', which no file can be called: {error}.") from error
    if not target.startswith(os.path.join(folder, "")):
        raise ModelError(
            f"{model} refers to the external file '{shown(name)}', which is not inside its own folder: a symbolic link leads "
            f"to '{shown(target)}'."
        )
    return target


def open_external(folder: str, name: str, model: str, *, use_mmap: bool = True) -> MappedFile:
    """Map the external file `name` in the model's folder read-only, or without `use_mmap` read it into memory.

    Raises:
        ModelError: the name is refused, a link leads out of the folder, or the file cannot be read or is not a regular file.
    """
    target = locate(folder, name, model)
    mapped = map_file(target, use_mmap=use_mmap, follow=False)
    if locate(folder, name, model) != target:
        raise ModelError(
            f"The external file '{shown(name)}' of {model} changed its place while it was opened; open the model again."
        )
    return mapped


def missing_files(contents: Mapping[str, Content], path: str) -> dict[str, Content]:
    """Return the external files of a model that do not exist yet: their contents by path. Nothing is written.

    Args:
        contents: the contents of all external files, by their names in the model.
        path: the path at which the model is to be written.

    Raises:
        ModelError: a name is refused, a file exists with other contents, a file is the model's own, or two names are the same file.
    """
    own = os.path.realpath(path)
    folder = os.path.dirname(own)
    model = f"The model for '{shown(path)}'"
    targets: dict[str, tuple[str, Content]] = {own.casefold(): (own, b"")}
    missing: dict[str, Content] = {}
    for name, content in contents.items():
        target = locate(folder, name, model, writing=True)
        known = targets.setdefault(target.casefold(), (target, content))
        if known[0] == own or (known[1] is not content and known[1] != content):
            raise ModelError(f"{model} has the external file '{shown(name)}' under the name of another of its files; rename it.")
        parent = os.path.dirname(target)
        while not os.path.lexists(parent):
            parent = os.path.dirname(parent)
        if not os.path.isdir(parent):
            raise ModelError(f"Could not make the folder of '{shown(target)}': '{shown(parent)}' is a file.")
        if not os.path.lexists(target):
            missing[target] = content
        elif not _holds(target, content):
            raise ModelError(
                f"'{shown(target)}' is there and holds something else than what the model refers to by the name '{shown(name)}'; "
                "it stays as it is: save into another folder, or remove it first."
            )
    return missing


def _holds(path: str, content: Content) -> bool:
    """Return whether a file exists and has exactly these contents."""
    view = memoryview(content)
    try:
        descriptor = open_regular(path, follow=False)
        with os.fdopen(descriptor, "rb") as file:
            if os.fstat(descriptor).st_size != len(view):
                return False
            return all(file.read(min(_PIECE, len(view) - at)) == view[at : at + _PIECE] for at in range(0, len(view), _PIECE))
    except (OSError, ValueError):
        return False
