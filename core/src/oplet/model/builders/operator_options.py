"""The FlatBuffers options table of each built-in operator, and suggestions for misspelt operator names."""

from __future__ import annotations

import difflib
import functools

from oplet.model.builders.arguments import OPERATOR, takes
from oplet.schema import options as o
from oplet.schema.enums import BuiltinOperator
from oplet.schema.stablehlo_options import BuiltinOptions2
from oplet.schema.table import Table

__all__ = ["misspelt_operator", "options_class"]

#: Operators that share a table, or whose table has another name.
_SHARED: dict[type[Table], str] = {
    o.Pool2DOptions: "AVERAGE_POOL_2D L2_POOL_2D MAX_POOL_2D",
    o.L2NormOptions: "L2_NORMALIZATION",
    o.ReducerOptions: "MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM",
    o.SequenceRNNOptions: "UNIDIRECTIONAL_SEQUENCE_RNN",
    o.MaximumMinimumOptions: "MAXIMUM MINIMUM",
    o.Conv3DOptions: "CONV_3D_TRANSPOSE",
    o.RandomOptions: "MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM",
}


@functools.cache
def _classes() -> dict[str, type[Table]]:
    """Map operator names to the classes of their options tables, most of them found by name: CONV_2D has Conv2DOptions."""
    named = {cls.__name__.removesuffix("Options").lower(): cls for cls in (*o.BuiltinOptions.values(), *BuiltinOptions2.values())}
    found = {op.name: cls for op in BuiltinOperator if (cls := named.get(op.name.replace("_", "").lower())) is not None}
    return found | {op: cls for cls, ops in _SHARED.items() for op in ops.split()}


@takes(op=OPERATOR)
def options_class(op: BuiltinOperator | str) -> type[Table] | None:
    """Return the class of the options table of a built-in operator, given by code or name; None if it has no options.

    Examples:
        >>> options_class(BuiltinOperator.MAX_POOL_2D).__name__
        'Pool2DOptions'
    """
    return _classes().get(op if isinstance(op, str) else BuiltinOperator(op).name)


def misspelt_operator(name: str) -> str | None:
    """Return the built-in operator of which a name is probably a misspelling; None if it may be a custom op's.

    Misspellings are names in capitals that nearly equal a built-in operator's, and names in small letters that equal one but for the
    case. Custom ops may have almost any other name.

    Examples:
        >>> misspelt_operator("CONV2D"), misspelt_operator("Atan")
        ('CONV_2D', None)
    """
    if name == name.lower() and name.upper() in BuiltinOperator.__members__:
        return name.upper()
    if name != name.upper():
        return None
    close = difflib.get_close_matches(name, [op.name for op in BuiltinOperator], 1, 0.8)
    return close[0] if close else None
