"""Names and versions of the composites in a model's tables."""

from __future__ import annotations

from oplet import Composite
from oplet.schema import tables
from oplet.schema.stablehlo_options import StableHLOCompositeOptions

__all__ = ["composite_of", "version_of"]


def composite_of(operator: tables.Operator) -> Composite | None:
    """Return the composite op that a STABLEHLO_COMPOSITE node stands for; None for another op, or a composite without a name."""
    options = operator.builtin_options_2
    return Composite(options.name) if isinstance(options, StableHLOCompositeOptions) and options.name else None


def version_of(operator: tables.Operator) -> int:
    """Return the version in the options of a STABLEHLO_COMPOSITE node; 0, which converters write as well, for other nodes."""
    options = operator.builtin_options_2
    return options.version if isinstance(options, StableHLOCompositeOptions) else 0
