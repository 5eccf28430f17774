"""Generator of docs/operators.md: the installed operators, with versions, types, and differences from LiteRT.

python -m oplet_tools.describing.operators > docs/operators.md

Names and versions of the composites in a model's tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from oplet import Composite, OpResolver, Registration
from oplet.schema import tables
from oplet.schema.enums import TensorType
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.toolkit import ResolverEntry, op_label

__all__ = ["operators_page"]


def composite_of(operator: tables.Operator) -> Composite | None:
    """Return the composite op that a STABLEHLO_COMPOSITE node stands for; None for another op, or a composite without a name."""
    options = operator.builtin_options_2
    return Composite(options.name) if isinstance(options, StableHLOCompositeOptions) and options.name else None


def version_of(operator: tables.Operator) -> int:
    """Return the version in the options of a STABLEHLO_COMPOSITE node; 0, which converters write as well, for other nodes."""
    options = operator.builtin_options_2
    return options.version if isinstance(options, StableHLOCompositeOptions) else 0


_HEAD = """# Operators

<!-- Generated from the registrations by `python -m oplet_tools.describing.operators`; do not edit. -->

What each operator of `{package}` is served in, and which element types its main inputs may have. "Differs" says where an answer is
not LiteRT's, and why; [where oplet and LiteRT disagree](numerics.md) has more of it.

| operator | versions | types | differs |
|---|---|---|---|
"""


def operators_page(resolver: OpResolver, package: str) -> str:
    """Make the Markdown page of one package's operators.

    Args:
        resolver: finds the kernels of operators, of this and of other packages.
        package: the distribution's name.
    """
    entries = [entry for entry in resolver.entries() if entry.provenance.distribution == package]
    rows = [_row(entry, entry.load(entry.max_version)) for entry in sorted(entries, key=lambda entry: op_label(entry.op))]
    return _HEAD.format(package=package) + "\n".join(rows) + f"\n\n{len(rows)} operators.\n"


def _row(entry: ResolverEntry, registration: Registration) -> str:
    versions = str(entry.min_version) if entry.min_version == entry.max_version else f"{entry.min_version} to {entry.max_version}"
    types = _types(registration.types) + (f"; only {registration.limits}" if registration.limits is not None else "")
    return f"| {op_label(entry.op)} | {versions} | {types} | {registration.differences} |"


def _types(types: Iterable[TensorType]) -> str:
    taken = set(types)
    refused = set(TensorType) - taken
    if not taken or not refused:
        return "any"
    if len(refused) < len(taken):
        return f"any but {_names(refused)}"
    return _names(taken)


def _names(types: Iterable[TensorType]) -> str:
    return ", ".join(type.name.lower() for type in sorted(types))


def main() -> None:
    """Write the page of the built-in operators to standard output."""
    from oplet import PluginManager

    package = "oplet-builtin-ops"
    sys.stdout.write(operators_page(PluginManager(load=[package]).resolver(), package))


if __name__ == "__main__":
    main()
