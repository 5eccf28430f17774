"""The composites of a model, as its tables have them."""

from __future__ import annotations

from oplet.ops.composite import Composite
from oplet.schema import tables
from oplet.schema.stablehlo_options import StableHLOCompositeOptions

__all__ = ["composite_of", "version_of"]


def composite_of(operator: tables.Operator) -> Composite | None:
    """The composite that a node is; None if it is none, or one without a name."""
    options = operator.builtin_options_2
    return Composite(options.name) if isinstance(options, StableHLOCompositeOptions) and options.name else None


def version_of(operator: tables.Operator) -> int:
    """The version of the composite that a node is; 0, which converters write, where nothing is said."""
    options = operator.builtin_options_2
    return options.version if isinstance(options, StableHLOCompositeOptions) else 0
