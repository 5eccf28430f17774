"""A model of one op that calls a subgraph on scalars: a reduction, a sort, a scatter, a composite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oplet import ModelBuilder

__all__ = ["Step", "model_with_body"]

#: A node of a body: operator, the values that it reads, the type of what it gives, options. Values are the body's inputs first.
Step = tuple[str, Sequence[Any], str, Any]


def model_with_body(
    op: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    options: Any,
    types: Sequence[str],
    steps: Sequence[Step],
    results: Sequence[int],
) -> bytes:
    """A model of one op and its body, subgraph 1; a number among the values that a step reads is a value, an array a constant."""
    builder = ModelBuilder()
    main, body = builder.add_subgraph("main"), builder.add_subgraph("body")
    given = [main.add_tensor(f"i{i}", type, shape) for i, (type, shape) in enumerate(inputs)]
    made = [main.add_tensor(f"o{i}", type, shape) for i, (type, shape) in enumerate(outputs)]
    main.set_inputs(*given)
    main.set_outputs(*made)
    main.add_operator(op, given, made, options)
    values = [body.add_tensor(f"a{i}", type, ()) for i, type in enumerate(types)]
    body.set_inputs(*values)
    for number, (name, read, type, chosen) in enumerate(steps):
        operands = [
            values[value] if isinstance(value, int) else body.add_tensor(f"c{number}", value.dtype.name, value.shape, data=value)
            for value in read
        ]
        values.append(body.add_tensor(f"v{number}", type, ()))
        body.add_operator(name, operands, [values[-1]], chosen)
    body.set_outputs(*(values[result] for result in results))
    return builder.to_bytes()
