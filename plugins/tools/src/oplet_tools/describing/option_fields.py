"""Generator of docs/options.md: the options tables of built-in operators, with the fields, their defaults and versions.

python -m oplet_tools.describing.option_fields > docs/options.md
"""

from __future__ import annotations

import sys
from enum import IntEnum

from oplet.schema.enums import BuiltinOperator
from oplet.schema.table import Field, Table
from oplet.toolkit import options_class
from oplet.versions.runtime_version import first_runtime

__all__ = ["options_page"]

_HEAD = """# Options of operators

<!-- Generated from the schema by `python -m oplet_tools.describing.option_fields`; do not edit. -->

What kernels and delegates read with `node.options(CLASS)`, and what `ModelBuilder.add_operator` takes: the classes are in `oplet.schema.options` and
`oplet.schema.stablehlo_options`, and an option that a file does not say has its default. "Since" is the first version of the operator that knows
the field. The newest version is the last that a release of LiteRT or TensorFlow Lite runs; what makes a node need a version, `oplet versions MODEL
--nodes` says of each.

| operator | newest version | class | fields: default |
|---|---|---|---|
"""


def options_page() -> str:
    """Return a Markdown page of the fields of all operators' options."""
    rows = []
    for op in sorted(BuiltinOperator, key=lambda op: op.name):
        table = options_class(op)
        if table is not None:
            rows.append(f"| {op.name} | {_newest(op.name) or ''} | `{table.__name__}` | {_fields(table)} |")
    return _HEAD + "\n".join(rows) + "\n"


def _newest(op: str) -> int:
    """Return the last version of an operator that a release runs; 0 if none is known."""
    version = 0
    while first_runtime(op, version + 1):
        version += 1
    return version


def _fields(table: type[Table]) -> str:
    return (
        ", ".join(
            f"{field.name}: {_default(field)}" + (f" (since {field.since})" if field.since > 1 else "") for field in table.fields
        )
        or "none"
    )


def _default(field: Field) -> str:
    if isinstance(field.default, IntEnum):
        return field.default.name
    if field.enum is not None and field.default is not None:
        return str(field.enum(field.default).name)
    return "absent" if field.default is None else str(field.default)


def main() -> None:
    """Print the page of operators' options on standard output."""
    sys.stdout.write(options_page())


if __name__ == "__main__":
    main()
