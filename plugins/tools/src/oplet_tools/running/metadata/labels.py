"""Reads the labels of an output's scores, from a model's metadata and the file that is attached to it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from oplet import Model
from oplet.errors import ModelError, OpletError, TensorError
from oplet.texts import shown
from oplet_tools.running.metadata.attached_files import attached_file
from oplet_tools.running.metadata.tables import AXIS_LABELS, tensor_metadata

__all__ = ["AttachedLabels", "fitting_labels", "labels_of"]


class AttachedLabels(NamedTuple):
    """Labels in the model's own file.

    Attributes:
        file: the name of the attached file.
        labels: the labels, one for each index along the last axis, or for each value.
    """

    file: str
    labels: tuple[str, ...]


def fitting_labels(
    model: Model, subgraph: int, position: int, name: str, size: int, complain: Callable[[str], None], say: Callable[[str], None]
) -> tuple[str, ...]:
    """Return the labels of an output that is one row of scores, by the model's metadata; empty if there are none that fit.

    Args:
        model: the model.
        subgraph: the subgraph's index.
        position: the output's position among the subgraph's outputs.
        name: the output's name, for messages.
        size: the number of scores.
        complain: called with a message where labels are named and cannot be taken.
        say: called with a message where they are taken.
    """
    try:
        found = labels_of(model, subgraph, position)
    except TensorError as error:
        complain(str(error))
        return ()
    if found is None:
        return ()
    file = shown(found.file)
    if len(found.labels) != size:
        complain(
            f"'{file}' in the model's metadata has {len(found.labels)} labels for {size} scores of '{name}', and is not used."
        )
        return ()
    say(f"output '{name}': labels of '{file}', as the model's metadata say")
    return found.labels


def labels_of(model: Model, subgraph: int, position: int, kinds: Collection[int] = (AXIS_LABELS,)) -> AttachedLabels | None:
    """Return the labels of an output by the model's metadata; None if the metadata name no labels.

    Of several files for several languages the first is taken, as the metadata schema has it.

    Args:
        model: the model.
        subgraph: the subgraph's index.
        position: the output's position among the subgraph's outputs.
        kinds: the types of files that are taken, AXIS_LABELS or VALUE_LABELS.

    Raises:
        TensorError: the metadata or the file are damaged, or the file is missing.
    """
    try:
        said = tensor_metadata(model, subgraph, position, output=True)
        for each in (said.associated_files or ()) if said is not None else []:
            if each.type not in kinds or not each.name:
                continue
            content = attached_file(model, each.name)
            if content is None:
                raise ModelError(f"they name the file '{shown(each.name)}', which is not attached to the model.")
            return AttachedLabels(each.name, tuple(line.strip() for line in content.decode("utf-8-sig").splitlines()))
    except (OpletError, UnicodeDecodeError) as error:
        raise TensorError(
            f"The labels in the metadata of {model.name} cannot be read: {str(error).rstrip('.')}; give --labels."
        ) from error
    return None
