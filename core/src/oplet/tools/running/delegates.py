"""Delegates as a command line asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oplet.delegates.specifier import is_auto, parse_delegate
from oplet.errors import DelegateError

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate
    from oplet.plugins.manager import PluginManager

__all__ = ["check_delegates", "delegate_named", "delegates_or_auto"]


def delegate_named(text: str, plugins: PluginManager) -> Delegate:
    """The delegate that a command line asks for.

    Args:
        text: see `parse_delegate`.
        plugins: where it comes from.

    Raises:
        DelegateError: the text is malformed, nobody brings the delegate, or it refuses its options.
    """
    name, options = parse_delegate(text)
    if is_auto(text):
        raise DelegateError(
            f"'{text}' chooses among all delegates when a model is run, tuned or measured (`oplet run`, `tune`, `benchmark`); name a "
            "delegate here."
        )
    return plugins.registry().find(name).create(options)


def check_delegates(texts: Sequence[str], plugins: PluginManager) -> None:
    """Say now what of a command line's delegates names none, without making them.

    Raises:
        DelegateError: a text is malformed, nobody brings the delegate, or "auto" does not stand alone.
    """
    if any(map(is_auto, texts)):
        delegates_or_auto(texts, plugins)
        return
    for text in texts:
        plugins.registry().find(parse_delegate(text)[0])


def delegates_or_auto(texts: Sequence[str], plugins: PluginManager) -> Sequence[Delegate] | str:
    """The delegates that a command line asks for, for an interpreter; "auto" as it stands.

    Raises:
        DelegateError: see `delegate_named`; or "auto" does not stand alone.
    """
    if not any(map(is_auto, texts)):
        return [delegate_named(text, plugins) for text in texts]
    if len(texts) > 1:
        raise DelegateError(
            f"'{next(filter(is_auto, texts))}' chooses among all delegates, so it stands alone; here are {len(texts)}."
        )
    return texts[0]
