"""Forms of outputs in the results of rows: all their values, or the highest scores and their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from oplet.errors import TensorError
from oplet_predictor import Column, Lent
from oplet_tools.running.many.keeping.results import OutputForm
from oplet_tools.running.metadata.labels import fitting_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DEFAULT_TOP", "output_forms"]

#: The number of highest scores where labels are known and no number is given.
DEFAULT_TOP = 5


class _Tells(Protocol):
    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...


def output_forms(
    lent: Lent, top: int | None, labels: Sequence[str] | None, labels_file: str, reporter: _Tells
) -> tuple[OutputForm, ...]:
    """Return how each output appears in results: all its values, or its highest scores.

    An output that is one row of scores has its highest ones where `top` or `labels` ask for it, or the model's metadata have labels for it.

    Args:
        lent: the opened model.
        top: the number of highest scores that the user asks for; None if it is not given.
        labels: labels that the user gives; None for those in the model's metadata.
        labels_file: the labels' file, for messages.
        reporter: told which labels are taken, and which are not.

    Raises:
        TensorError: scores are asked for and no output has any.
    """
    forms = [_form(lent, column, top, labels, labels_file, reporter) for column in lent.single.outputs.values()]
    if (top is not None or labels is not None) and not any(form.top for form in forms):
        raise TensorError("No output is one row of scores, so there is nothing that --top and --labels could name.")
    return tuple(forms)


def _form(
    lent: Lent, column: Column, top: int | None, labels: Sequence[str] | None, labels_file: str, reporter: _Tells
) -> OutputForm:
    size = _scores(column)
    if not size:
        return OutputForm(column.name, column.shape)
    known: Sequence[str] = labels or ()
    if labels is None:
        known = _attached(lent, column, size, reporter)
        if not known and top is None:
            return OutputForm(column.name, column.shape)
    elif labels and len(labels) != size:
        reporter.warn(f"'{labels_file}' has {len(labels)} labels for {size} scores.")
    return OutputForm(column.name, column.shape, min(DEFAULT_TOP if top is None else top, size), tuple(known))


def _scores(column: Column) -> int:
    """Return the number of scores of an output whose row is one list of them; 0 for another output."""
    if -1 in column.shape or column.dtype.kind not in "iufV" or not column.shape:
        return 0
    largest = max(column.shape)
    return largest if largest > 1 and sorted(column.shape)[:-1] == [1] * (len(column.shape) - 1) else 0


def _attached(lent: Lent, column: Column, size: int, reporter: _Tells) -> Sequence[str]:
    """Return the labels of an output in the model's metadata; empty if there are none, or not `size` of them."""
    opened = lent.single
    if column.index not in opened.subgraph.outputs:
        return ()
    position = opened.subgraph.outputs.index(column.index)
    model, index = opened.interpreter.model, opened.subgraph.index
    return fitting_labels(model, index, position, column.name, size, reporter.warn, reporter.say)
