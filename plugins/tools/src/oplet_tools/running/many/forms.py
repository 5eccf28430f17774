"""Forms of outputs in the results of rows: all their values, or the highest scores and their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oplet.errors import TensorError
from oplet_predictor import Column, Lent
from oplet_tools.metadata.output_rules import Reporter, output_rules
from oplet_tools.running.many.keeping.results import OutputForm

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DEFAULT_TOP", "output_forms"]

#: The number of highest scores where labels are known and no number is given.
DEFAULT_TOP = 5


def output_forms(
    lent: Lent, top: int | None, labels: Sequence[str] | None, labels_file: str, reporter: Reporter, locale: str = ""
) -> tuple[OutputForm, ...]:
    """Return the form of each output in the results: all its values, or its highest scores.

    An output that is a single row of numbers is written as highest scores if `top` or `labels` is given, or the metadata have labels.

    Args:
        lent: the open model.
        top: the number of highest scores that the user asks for; None if it is not given.
        labels: labels that the user gives; None for those in the model's metadata.
        labels_file: the labels' file, for messages.
        reporter: receives messages on which labels are used, and which cannot be.
        locale: the language of labels in the model's metadata; "" for the first.

    Raises:
        TensorError: `top` or `labels` is given and no output is a single row of numbers.
    """
    forms = [_form(lent, column, top, labels, labels_file, reporter, locale) for column in lent.single.outputs.values()]
    if (top is not None or labels is not None) and not any(form.top for form in forms):
        raise TensorError("No output is one row of scores, so there is nothing that --top and --labels could name.")
    return tuple(forms)


def _form(
    lent: Lent,
    column: Column,
    top: int | None,
    labels: Sequence[str] | None,
    labels_file: str,
    reporter: Reporter,
    locale: str,
) -> OutputForm:
    size = _scores(column)
    if not size:
        return OutputForm(column.name, column.shape)
    opened = lent.single
    said = output_rules(
        opened.interpreter.model,
        opened.subgraph.index,
        column.index,
        column.name,
        size,
        reporter,
        locale=locale,
        labelled=labels is not None,
    )
    if labels is None and not said.labels and top is None:
        return OutputForm(column.name, column.shape)
    if labels and len(labels) != size:
        reporter.warn(f"'{labels_file}' has {len(labels)} labels for {size} scores.")
    known = said.labels if labels is None else labels
    return OutputForm(column.name, column.shape, min(DEFAULT_TOP if top is None else top, size), tuple(known), said.scores)


def _scores(column: Column) -> int:
    """Return the number of scores of an output whose row is one list of them; 0 for another output."""
    if -1 in column.shape or column.dtype.kind not in "iufV" or not column.shape:
        return 0
    largest = max(column.shape)
    return largest if largest > 1 and sorted(column.shape)[:-1] == [1] * (len(column.shape) - 1) else 0
