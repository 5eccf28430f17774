"""Operators that save variables to a file and restore them: they run where the program names a folder, and in no other one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from oplet.errors import InvokeError
from oplet_flex_delegate.library import tensorflow

__all__ = ["CHECKPOINTS", "NO_FOLDER", "confined", "path_inside"]

#: The operators whose first input is the name of a file.
CHECKPOINTS = frozenset({"Save", "SaveV2", "Restore", "RestoreV2"})
#: Why they are left alone without a folder.
NO_FOLDER = (
    "it reads or writes files, which a model may do in a folder that you name and nowhere else: Interpreter(..., checkpoint_folder=FOLDER), "
    "or folder=FOLDER among the delegate's options"
)
#: What TensorFlow takes for patterns of names.
_PATTERNS = frozenset("*?[]{}" if os.name == "nt" else "*?[]{}\\")

Run = Callable[[Sequence[Any]], Sequence[Any]]


def path_inside(folder: str, name: bytes) -> str:
    """Return the path of a checkpoint in a folder.

    Args:
        folder: the only folder for checkpoints, which the application chose.
        name: the checkpoint's name, an input of the model: relative to the folder, or a path in it.

    Raises:
        InvokeError: the folder does not exist, or the name leads out of the folder, or is a pattern or a link.
    """
    text, root = os.fsdecode(name), os.path.realpath(folder)
    if not os.path.isdir(root):
        raise InvokeError(f"The folder for checkpoints, '{folder}', does not exist; make it first.")
    target = os.path.join(root, text)
    base = os.path.basename(target)
    if "\0" in text or "://" in text or base in ("", os.curdir, os.pardir) or _PATTERNS.intersection(target):
        raise InvokeError(f"{text!r} is no name of a checkpoint in '{folder}': give a plain file name.")
    parent = os.path.realpath(os.path.dirname(target))
    try:
        inside = os.path.commonpath([root, parent]) == root
    except ValueError:  # another drive
        inside = False
    if not inside:
        raise InvokeError(f"{text!r} leads out of '{folder}', the folder that the program lets the model save and restore in.")
    if not os.path.isdir(parent):
        raise InvokeError(f"There is no folder '{parent}' for the checkpoint {text!r}; make it first.")
    with os.scandir(parent) as entries:
        if any(entry.is_symlink() for entry in entries if entry.name.startswith(base)):  # SaveV2 writes files of longer names
            raise InvokeError(f"{text!r} is a link in '{folder}', which a checkpoint must not be.")
    return os.path.join(parent, base)


def confined(run: Run, folder: str) -> Run:
    """Wrap a function that runs a checkpoint operator (save or restore), so that file names become paths inside the folder.

    Args:
        run: the function that runs the operator.
        folder: the only folder that the operator may read and write.
    """

    def inside(inputs: Sequence[Any]) -> Sequence[Any]:
        name = inputs[0].numpy()
        if not isinstance(name, bytes):
            raise InvokeError("The name of a checkpoint is one string.")
        return run([tensorflow().constant(os.fsencode(path_inside(folder, name))), *inputs[1:]])

    return inside
