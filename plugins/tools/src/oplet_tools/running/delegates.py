"""Makes delegates from the options of a command line.

Parses the command-line form of operator libraries, shared libraries with TfLiteRegistrations.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oplet.errors import DelegateError
from oplet.schema.enums import BuiltinOperator
from oplet.toolkit import LibraryEntry, Operators, is_auto
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


#: The path ends at the first colon behind which a function's name stands, which in C++ may have colons itself.
_FORM = re.compile(r"(?P<path>.+?)(:(?P<function>[A-Za-z_]\w*(::[A-Za-z_]\w*)*)(=(?P<op>.+))?)?", re.DOTALL)


def parse_op_library(text: str) -> tuple[str, Operators]:
    """Parse a text into the file of an operator library, and a mapping from op to the function of the library that registers it,
    as `PluginManager.add_op_library` takes them.

    Args:
        text: "FILE", "FILE:FUNCTION" or "FILE:FUNCTION=OP"; OP is a custom op's name, or that of a built-in operator to replace.

    Examples:
        >>> parse_op_library("libatan.so:AtanOperator=Atan")
        ('libatan.so', {'Atan': 'AtanOperator'})
    """
    found = _FORM.fullmatch(text)
    if found is None:
        return text, None  # whoever opens it says that there is no such file
    path, function, op = found["path"], found["function"], found["op"]
    if op is None:
        return path, function
    return path, {BuiltinOperator[op] if op in BuiltinOperator.__members__ else op: function}
