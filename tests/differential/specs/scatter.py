"""STABLEHLO_SCATTER: places updates with a computation of its own."""

from __future__ import annotations

from oplet import ModelBuilder
from oplet.schema.stablehlo_options import StablehloScatterOptions

from ..harness import Case
from ..strategies import F32, I8, I16, I32, I64, U8, Draw, spec
from .graphs import case, declare


@spec("STABLEHLO_SCATTER", weight=2)
def stablehlo_scatter(draw: Draw) -> Case:
    operand = draw.shape(1, 4, 4, empty=False)
    rank, batch = len(operand), draw.dims(draw.integer(0, 2), 1, 3)
    depth = draw.integer(1, rank)
    index_map = [int(axis) for axis in draw.rng.permutation(rank)[:depth]]
    inserted = sorted(axis for axis in range(rank) if draw.flag())
    window = [draw.integer(1, dim) for axis, dim in enumerate(operand) if axis not in inserted]
    total = len(window) + len(batch)
    window_dims = sorted(int(axis) for axis in draw.rng.permutation(total)[: len(window)])
    sizes, rest = iter(window), iter(batch)
    updates_shape = [next(sizes) if axis in window_dims else next(rest) for axis in range(total)]
    place = draw.integer(0, len(batch))
    index_shape = [*batch[:place], depth, *batch[place:]]
    starts = draw.rng.integers(-1, max(operand) + 1, index_shape)
    type = draw.type(F32, I32, I64, I8, U8, I16)
    body = draw.pick("", "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM")
    if draw.seldom(20):
        body = "SUB"
    x = draw.tensor(type, operand, quantized=False, constant=False)
    updates = draw.tensor(type, updates_shape, quantized=False, constant=False)
    indices = draw.given(starts, draw.pick(I32, I64), constant=draw.flag())
    options = StablehloScatterOptions(
        indices_are_sorted=False, update_window_dims=window_dims, inserted_window_dims=inserted,
        scatter_dims_to_operand_dims=index_map, index_vector_dim=place, unique_indices=False, update_computation_subgraph_index=1,
    )  # fmt: skip
    builder = ModelBuilder()
    main, inner = builder.add_subgraph(), builder.add_subgraph("update")
    args = [declare(main, name, arg) for name, arg in zip("xiu", (x, indices, updates))]
    result = main.add_tensor("y", type, operand)
    fed = [(index, arg) for index, arg in zip(args, (x, indices, updates)) if not arg.constant]
    main.set_inputs(*[index for index, _ in fed])
    main.set_outputs(result)
    main.add_operator("STABLEHLO_SCATTER", args, [result], options)
    a, b = inner.add_tensor("a", type, ()), inner.add_tensor("b", type, ())
    inner.set_inputs(a, b)
    if body:
        c = inner.add_tensor("c", type, ())
        inner.add_operator(body, [a, b], [c])
        inner.set_outputs(c)
    else:
        inner.set_outputs(b)
    return case(draw, builder, [arg for _, arg in fed], f"{body} {x} {starts.tolist()} {updates} {options}")
