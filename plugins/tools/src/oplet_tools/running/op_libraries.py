"""Parses the command-line form of operator libraries, shared libraries with TfLiteRegistrations."""

from __future__ import annotations

import re

from oplet.schema.enums import BuiltinOperator
from oplet.toolkit import Operators

__all__ = ["parse_op_library"]

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
