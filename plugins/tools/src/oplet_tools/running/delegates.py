"""Makes delegates from the options of a command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oplet.errors import DelegateError
from oplet.toolkit import LibraryEntry, is_auto
from oplet_predictor.arguments import parse_delegate

if TYPE_CHECKING:
    from oplet import Delegate, PluginManager

__all__ = ["check_delegates", "delegates_or_auto", "make_delegate"]


def make_delegate(text: str, plugins: PluginManager) -> Delegate:
    """Make the delegate that a text names.

    Args:
        text: name and options, see `parse_delegate`.
        plugins: the plugins that provide delegates.

    Raises:
        DelegateError: the text is malformed, there is no such delegate, or it refuses its options.
    """
    name, options = parse_delegate(text)
    if is_auto(text):
        raise DelegateError(
            f"'{text}' chooses among all delegates when a model is run, tuned or measured (`oplet run`, `tune`, `benchmark`); name a "
            "delegate here."
        )
    return plugins.registry().find(name).create(options)


def check_delegates(texts: Sequence[str], plugins: PluginManager) -> None:
    """Check that the texts name delegates, without making them.

    Raises:
        DelegateError: a text is malformed, there is no such delegate or delegate library, or "auto" is given with others.
    """
    if any(map(is_auto, texts)):
        delegates_or_auto(texts, plugins)
        return
    for text in texts:
        entry = plugins.registry().find(parse_delegate(text)[0])
        # A name without a folder is looked up where the system has its libraries.
        if isinstance(entry, LibraryEntry) and os.path.dirname(entry.name) and not os.path.exists(entry.name):
            raise DelegateError(f"There is no delegate library {entry.name}; give the path of a shared library (.so).")


def delegates_or_auto(texts: Sequence[str], plugins: PluginManager) -> Sequence[Delegate] | str:
    """Make the delegates that texts name, for an interpreter; "auto" is returned unchanged.

    Raises:
        DelegateError: a text is malformed, there is no such delegate, or "auto" is given with others or with op libraries.
    """
    if not any(map(is_auto, texts)):
        return [make_delegate(text, plugins) for text in texts]
    if plugins.has_op_libraries:  # what was measured without them, and is remembered, would be taken for the fastest with them
        raise DelegateError(
            f"'{next(filter(is_auto, texts))}' chooses among installed packages; with a library of operators (--custom-op-library), name "
            "a delegate, or none."
        )
    if len(texts) > 1:
        raise DelegateError(
            f"'{next(filter(is_auto, texts))}' chooses among all delegates, so it stands alone; here are {len(texts)}."
        )
    return texts[0]
