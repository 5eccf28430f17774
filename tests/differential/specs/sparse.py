"""Sparse constants."""

from __future__ import annotations

import numpy as np

from oplet.schema.enums import DimensionType
from oplet.schema.tables import DimensionMetadata, Int32Vector, SparsityParameters, Uint8Vector, Uint16Vector

from ..harness import Case
from ..strategies import F16, F32, I8, Arg, Draw, out, spec


@spec("DENSIFY")
def densify(draw: Draw) -> Case:
    """A matrix by compressed rows or columns, its numbers in the three widths of the format."""
    shape = draw.dims(2, 1, 6)
    type = draw.type(F32, F16, I8)
    kept = draw.rng.random(shape) < draw.pick(0.5, 0.1, 0.9)
    order = draw.pick([0, 1], [1, 0])
    rows = kept if order == [0, 1] else kept.T
    segments = np.concatenate([[0], np.cumsum(rows.sum(1))])
    vector, dtype = draw.pick((Int32Vector, np.int32), (Uint16Vector, np.uint16), (Uint8Vector, np.uint8))
    levels = [
        DimensionMetadata(format=DimensionType.DENSE, dense_size=rows.shape[0]),
        DimensionMetadata(
            format=DimensionType.SPARSE_CSR,
            array_segments=vector(values=segments.astype(dtype)),
            array_indices=vector(values=np.nonzero(rows)[1].astype(dtype)),
        ),
    ]
    parameters = SparsityParameters(traversal_order=np.array(order, np.int32), dim_metadata=levels)
    count = int(kept.sum())
    if not count:  # a buffer without bytes is no constant
        return densify(draw)
    data = draw.values(type, (count,))
    x = Arg(type, shape, constant=True, flexible=False, alone=False, sparsity=parameters, data=data)
    return draw.one_op([x], [out(type)], breakable=False)
