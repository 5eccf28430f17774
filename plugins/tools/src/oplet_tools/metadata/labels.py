"""Reads the labels of an output: of the indices of its scores, or of its values, from a model's metadata and the file attached to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oplet import Model
from oplet.errors import ModelError, OpletError, TensorError
from oplet.texts import shown
from oplet_tools.metadata.attached_files import attached_file
from oplet_tools.metadata.tables import AssociatedFile, AssociatedFileType, tensor_metadata
from oplet_tools.metadata.ultralytics import ultralytics_of

__all__ = ["AttachedLabels", "labels_of", "lines_of"]


class AttachedLabels(NamedTuple):
    """Labels from a file that is attached to the model."""

    file: str  #: The name of the attached file.
    labels: tuple[str, ...]  #: The labels, one for each index along the last axis, or one for each value.
    missing: str = ""  #: Why the labels are not in the requested language; "" if they are.


def labels_of(model: Model, subgraph: int, position: int, *, locale: str = "", values: bool = False) -> AttachedLabels | None:
    """Return the labels of an output by the model's metadata; None if the metadata name no labels.

    Of files for several languages, that of `locale` or else the first is taken. For a classifier that ultralytics exported, the labels are
    the class names in its metadata.

    Args:
        subgraph: the subgraph's index.
        position: the output's position among the subgraph's outputs.
        locale: the language, such as "de" or "en-US"; "" for the first file.
        values: whether to return labels of the tensor's values (TENSOR_VALUE_LABELS), not those of the indices of its last axis.

    Raises:
        TensorError: the metadata or the file are damaged, or the file is missing.
    """
    wanted = AssociatedFileType.TENSOR_VALUE_LABELS if values else AssociatedFileType.TENSOR_AXIS_LABELS
    try:
        said = tensor_metadata(model, subgraph, position, output=True)
        files = [each for each in (said.associated_files or ()) if each.type == wanted and each.name] if said is not None else []
        if files:
            file, missing = _in_language(files, locale)
            return AttachedLabels(file.name or "", tuple(lines_of(model, file.name or "")), missing)
        if not values and (exported := ultralytics_of(model)) is not None and exported.task == "classify" and exported.names:
            return AttachedLabels(exported.file, exported.names)
    except (OpletError, UnicodeDecodeError) as error:
        raise TensorError(
            f"The labels in the metadata of {model.name} cannot be read: {str(error).rstrip('.')}; give --labels."
        ) from error
    return None


def lines_of(model: Model, name: str) -> list[str]:
    """Return the lines of an attached text file, without white space around them.

    Raises:
        ModelError: the file is not attached, or cannot be read.
        UnicodeDecodeError: the file is not UTF-8.
    """
    content = attached_file(model, name)
    if content is None:
        raise ModelError(f"they name the file '{shown(name)}', which is not attached to the model.")
    return [line.strip() for line in content.decode("utf-8-sig").splitlines()]


def _in_language(files: Sequence[AssociatedFile], locale: str) -> tuple[AssociatedFile, str]:
    """Return the file for a language, and why it is in another one, "" if it is not."""
    if not locale:
        return files[0], ""
    asked = locale.lower().replace("_", "-")
    told = [(each.locale or "").lower().replace("_", "-") for each in files]
    for file, one in zip(files, told):
        if one == asked:
            return file, ""
    for file, one in zip(files, told):
        if one and one.partition("-")[0] == asked.partition("-")[0]:
            return file, ""
    there = ", ".join(f"'{shown(each.locale)}'" for each in files if each.locale) or "none that is named"
    return files[0], f"there are no labels for the language '{shown(locale)}'; the languages are {there}"
