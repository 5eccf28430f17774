"""Operators that pick, place, search and generate values."""

from __future__ import annotations

import numpy as np

from oplet.schema.enums import CombinerType, LSHProjectionType
from oplet.schema.options import (
    ArgMaxOptions,
    ArgMinOptions,
    EmbeddingLookupSparseOptions,
    GatherOptions,
    LSHProjectionOptions,
    OneHotOptions,
    SkipGramOptions,
    SparseToDenseOptions,
    UniqueOptions,
)  # fmt: skip
from oplet.schema.stablehlo_options import StablehloGatherOptions

from ..harness import Case
from ..strategies import (
    BOOL,
    F16,
    F32,
    F64,
    I4,
    I8,
    I16,
    I32,
    I64,
    STRING,
    U8,
    U32,
    Arg,
    Draw,
    like,
    out,
    spec,
)  # fmt: skip

COMMON = (F32, I8, U8, I16, I32, I64, BOOL)


@spec("GATHER", weight=2)
def gather(draw: Draw) -> Case:
    params = draw.shape(1, 4, empty=False)
    axis = draw.axis(len(params))
    batch = draw.integer(0, draw.pick(0, 1, 2)) if not draw.seldom() else draw.integer(-2, 2)
    inner = draw.dims(draw.integer(0, 2), 1, 3)
    bound = params[axis] if -len(params) <= axis < len(params) else 1
    indices = draw.rng.integers(0, bound, (*params[: max(batch, 0)], *inner))
    if indices.size and draw.seldom(20):
        indices.flat[0] = draw.pick(-1, bound)
    x = draw.tensor(draw.type(*COMMON, *([STRING] if len(params) == 1 else [])), params)
    x.flexible = False
    return draw.one_op(
        [x, draw.given(indices, draw.pick(I32, I64, I16), constant=draw.flag())],
        [like(x)],
        GatherOptions(axis=axis, batch_dims=batch),
    )


@spec("GATHER_ND")
def gather_nd(draw: Draw) -> Case:
    params = draw.shape(1, 4, empty=False)
    depth = draw.integer(1, len(params))
    if draw.seldom(20):
        depth, draw.broken = 0, "no coordinates"
    batch = draw.dims(draw.integer(0, 2), 1, 3)
    indices = np.zeros((*batch, depth), np.int64)
    for axis in range(depth):
        indices[..., axis] = draw.rng.integers(0, params[axis], batch)
    if indices.size and draw.seldom(20):
        indices.flat[0] = draw.pick(-1, 9)
    x = draw.tensor(draw.type(*COMMON, STRING), params)
    x.flexible = False
    return draw.one_op([x, draw.given(indices, draw.pick(I32, I64, I16), constant=draw.flag())], [like(x)])


@spec("SCATTER_ND")
def scatter_nd(draw: Draw) -> Case:
    shape = draw.shape(1, 4, empty=False)
    depth, batch = draw.integer(1, len(shape)), draw.dims(draw.integer(1, 2), 1, 4)
    indices = np.stack([draw.rng.integers(0, dim, batch) for dim in shape[:depth]], -1)
    if draw.seldom(20):
        indices.flat[0] = draw.pick(-1, 9)
    updates = draw.tensor(draw.type(F32, I8, U8, I32, I64, BOOL), (*batch, *shape[depth:]), quantized=False)
    return draw.one_op([draw.given(indices, constant=draw.flag()), updates, draw.given(shape)], [like(updates)])


@spec("ONE_HOT")
def one_hot(draw: Draw) -> Case:
    shape = draw.shape(0, 3)
    type, depth = draw.type(F32, I32, I64, I8, U8, BOOL, I16), draw.integer(0, 5)
    indices = draw.tensor(draw.pick(I32, I64), shape, -1, 6)
    on, off = draw.tensor(type, (), quantized=False), draw.tensor(type, (), quantized=False)
    axis = draw.pick(-1, *range(len(shape) + 1)) if not draw.seldom(15) else draw.pick(-2, len(shape) + 1)
    return draw.one_op([indices, draw.given(depth), on, off], [out(type)], OneHotOptions(axis=axis))


@spec("WHERE")
def where(draw: Draw) -> Case:
    x = draw.tensor(draw.type(BOOL, F32, I32, I64, I8, U8, U32), draw.shape(0, 5), quantized=False)
    return draw.one_op([x], [out(I64)])


@spec("UNIQUE")
def unique(draw: Draw) -> Case:
    kind = draw.pick(I32, I64)
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), draw.shape(1, 1, 12), -3, 3)
    return draw.one_op([x], [like(x), out(kind)], UniqueOptions(idx_out_type=kind))


@spec("TOPK_V2", weight=2)
def topk_v2(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I32, I64, I16), draw.shape(1, 3, 9))
    k = draw.integer(0, x.shape[-1]) if not draw.seldom(15) else draw.pick(x.shape[-1] + 1, -1)
    if k < 0:
        draw.broken = "k"
    x.flexible = False
    return draw.one_op([x, draw.given(k, draw.pick(I32, I32, I16))], [like(x), out(draw.pick(I32, I32, I16))])


@spec("ARG_MAX", "ARG_MIN")
def arg_extreme(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I32, BOOL), draw.shape(1, 5))
    kind = draw.pick(I32, I64)
    options = (ArgMaxOptions if draw.op == "ARG_MAX" else ArgMinOptions)(output_type=kind)
    axis = draw.given(np.reshape(draw.axis(len(x.shape)), draw.pick((), (1,))), draw.pick(I32, I64))
    return draw.one_op([x, axis], [out(kind)], options)


@spec("FILL")
def fill(draw: Draw) -> Case:
    dims = list(draw.shape(0, 4))
    if dims and draw.seldom(15):
        dims[0] = -1
    value = draw.tensor(draw.type(F32, I8, I16, I32, I64, BOOL, STRING, F16), ())
    return draw.one_op([draw.given(dims, draw.pick(I32, I64)), value], [like(value)])


@spec("RANGE")
def range_(draw: Draw) -> Case:
    type = draw.type(I32, I64, F32)
    start, limit, delta = draw.integer(-10, 10), draw.integer(-10, 10), draw.pick(1, 2, 3, -1, -2)
    if not draw.seldom(5) and (limit - start) * delta < 0:
        delta = -delta
    if draw.seldom(20):
        delta = 0
    values: list[float] = [start, limit, delta]
    if type is F32:
        values = [value * 0.37 for value in values]
    constant = draw.flag()
    if type in (STRING, BOOL):
        type = F64
    return draw.one_op([draw.given(value, type, constant) for value in values], [out(type)])


@spec("SPARSE_TO_DENSE")
def sparse_to_dense(draw: Draw) -> Case:
    rank, index = draw.integer(1, 4), draw.pick(I32, I64)
    shape = draw.dims(rank, 1, 4)
    count = draw.integer(1, 4)
    indices = np.stack([draw.rng.integers(0, dim, count) for dim in shape], -1)
    if rank == 1 and draw.flag():
        indices = indices[:, 0]
    if draw.seldom(20):
        indices.flat[0] = draw.pick(9, -1)
    type = draw.type(F32, I32, I64, I8, U8)
    values = draw.tensor(type, draw.pick((), (count,)), quantized=False)
    args = [draw.given(indices, index), draw.given(shape, index), values, draw.tensor(type, (), quantized=False)]
    return draw.one_op(args, [out(type)], SparseToDenseOptions(validate_indices=draw.flag()))


@spec("EMBEDDING_LOOKUP", weight=2)
def embedding_lookup(draw: Draw) -> Case:
    table = draw.shape(2, 4, empty=False)
    type = draw.type(F32, I8, U8, I4)
    if type is I4:
        table = (*table[:-1], 2 * table[-1])  # rows of whole bytes
    values = draw.tensor(type, table, quantized=type not in (F32, I32), constant=True if type is I4 else None, symmetric=True)
    if type in (I8, I4) and draw.seldom(3):
        values.scale, values.zero_point = [0.1 * (i + 1) for i in range(table[0])], [0] * table[0]
        values.flexible = False
    ids = draw.rng.integers(0, table[0], draw.dims(1, 0, 4))
    if ids.size and draw.seldom(15):
        ids[0] = draw.pick(-1, table[0])
    values.flexible = False
    y = out(F32) if type is F32 or draw.flag() else Arg(type, (), scale=values.scale, zero_point=values.zero_point)
    return draw.one_op([draw.given(ids, constant=draw.flag()), values], [y], rtol=1e-4)


@spec("EMBEDDING_LOOKUP_SPARSE")
def embedding_lookup_sparse(draw: Draw) -> Case:
    table = draw.shape(2, 4, empty=False)
    rows = draw.integer(1, 4)
    buckets = sorted(draw.integer(0, rows - 1) for _ in range(draw.integer(1, 6)))
    ids = draw.rng.integers(0, table[0], len(buckets))
    if draw.seldom(20):
        ids[0] = draw.pick(-1, table[0])
    inner = draw.pick(1, 1, 2)
    indices = [[bucket, *([0] * inner)][: inner + 1] for bucket in buckets]
    shape = [rows, *([1] * inner)]
    values = draw.tensor(F32, table)
    values.flexible = False
    weights = draw.tensor(F32, (len(buckets),), 0.1, 2.0)
    weights.flexible = False
    args = [draw.given(ids), draw.given(indices), draw.given(shape), weights, values]
    combiner = draw.pick(CombinerType.SUM, CombinerType.MEAN, CombinerType.SQRTN)
    return draw.one_op(args, [out(F32)], EmbeddingLookupSparseOptions(combiner=combiner))


@spec("HASHTABLE_LOOKUP")
def hashtable_lookup(draw: Draw) -> Case:
    count = draw.integer(1, 6)
    keys = np.sort(draw.rng.choice(20, count, replace=False))
    wanted = draw.rng.choice([*keys, 3, 21, -1], draw.integer(1, 5))
    values = draw.tensor(draw.type(F32, I32, STRING, I8, U8, I64), (count, *draw.dims(draw.integer(0, 2), 1, 3)), quantized=False)
    values.flexible = False
    args = [draw.given(wanted, constant=False), draw.given(keys, constant=draw.flag()), values]
    return draw.one_op(args, [like(values), out(U8)])


@spec("LSH_PROJECTION")
def lsh_projection(draw: Draw) -> Case:
    hashes = draw.tensor(F32, (draw.integer(1, 4), draw.integer(1, 8)), -1, 1, constant=True)
    entries = draw.integer(1, 4)
    values = draw.tensor(draw.type(I32, F32, I64, U8), (entries, *draw.dims(draw.integer(0, 2), 1, 3)), quantized=False)
    values.flexible = False
    args: list[Arg | None] = [hashes, values]
    if draw.flag():
        args.append(draw.tensor(F32, (entries,), 0.1, 2))
        args[-1].flexible = False  # type: ignore[union-attr]
    kind = draw.pick(LSHProjectionType.SPARSE, LSHProjectionType.DENSE, LSHProjectionType.UNKNOWN)
    return draw.one_op(args, [out(I32)], LSHProjectionOptions(type=kind))


@spec("SKIP_GRAM")
def skip_gram(draw: Draw) -> Case:
    words = " ".join(draw.pick("the", "quick", "brown", "fox", "a", "\t", "") for _ in range(draw.integer(0, 7)))
    options = SkipGramOptions(ngram_size=draw.integer(1, 3), max_skip_size=draw.integer(0, 2), include_all_ngrams=draw.flag())
    data = np.array(words.encode(), object).reshape(draw.pick((), (1,)))
    return draw.one_op([draw.given(data, STRING)], [out(STRING)], options)


@spec("SEGMENT_SUM")
def segment_sum(draw: Draw) -> Case:
    shape = draw.shape(1, 3, 6, empty=False)
    ids, present = [], 0
    for _ in range(shape[0]):
        ids.append(present)
        present += draw.integer(0, 1 if not draw.seldom(8) else 3)
    if draw.seldom(15):
        ids[0] = draw.pick(-1, 9)
    x = draw.tensor(draw.type(F32, I32), shape)
    x.flexible = False
    return draw.one_op([x, draw.given(ids, constant=draw.flag())], [like(x)])


@spec("UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN")
def unsorted_segment(draw: Draw) -> Case:
    shape = draw.shape(1, 3, 5, empty=False)
    count, depth = draw.integer(1, 4), draw.integer(1, len(shape))
    ids = draw.rng.integers(-1, count, shape[:depth])
    if draw.seldom(15):
        ids.flat[0] = count
    x = draw.tensor(draw.type(F32, I32), shape)
    x.flexible = False
    return draw.one_op([x, draw.given(ids, constant=draw.flag()), draw.given(count)], [like(x)])


@spec("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", weight=2)
def non_max_suppression(draw: Draw) -> Case:
    boxes = draw.integer(0, 7)
    corners = np.sort(draw.rng.integers(0, 8, (boxes, 2, 2)), axis=1) + np.array([[0, 0], [1, 1]])
    order = draw.pick([0, 1, 2, 3], [2, 3, 0, 1])
    data = corners.reshape(boxes, 4)[:, order].astype(np.float32)
    scores = draw.tensor(F32, (boxes,), 0, 1, constant=False)
    scores.flexible = False
    limit = draw.integer(0, 8)
    v5 = draw.op == "NON_MAX_SUPPRESSION_V5"
    args = [
        draw.given(data, F32, False), scores, draw.given(limit), draw.given(draw.pick(0.5, 0.0, 0.3, 1.0, 0.8), F32),
        draw.given(draw.pick(0.0, 0.3, 0.6, -1.0), F32),
    ]  # fmt: skip
    outputs = [out(I32), out(I32)]
    if v5:
        args.append(draw.given(draw.pick(0.0, 0.5, 1.0) if not draw.seldom(15) else -1.0, F32))
        outputs.insert(1, out(F32))
    return draw.one_op(args, outputs)


@spec("STABLEHLO_GATHER", weight=2)
def stablehlo_gather(draw: Draw) -> Case:
    operand = draw.shape(1, 4, empty=False)
    rank, batch = len(operand), draw.dims(draw.integer(0, 2), 1, 3)
    depth = draw.integer(1, rank)
    index_map = [int(axis) for axis in draw.rng.permutation(rank)[:depth]]
    collapsed = sorted(axis for axis in range(rank) if draw.flag())
    sizes = [1 if axis in collapsed else draw.integer(1, dim) for axis, dim in enumerate(operand)]
    kept = rank - len(collapsed)
    offset = sorted(int(axis) for axis in draw.rng.permutation(kept + len(batch))[:kept])
    place = draw.integer(0, len(batch))
    start_shape = [*batch[:place], depth, *batch[place:]]
    starts = draw.rng.integers(-1, max(operand) + 1, start_shape)
    options = StablehloGatherOptions(
        offset_dims=offset, collapsed_slice_dims=collapsed, start_index_map=index_map, index_vector_dim=place,
        slice_sizes=sizes, indices_are_sorted=draw.flag(),
    )  # fmt: skip
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64, BOOL, F16), operand, quantized=False)
    x.flexible = False
    shape = iter([size for axis, size in enumerate(sizes) if axis not in collapsed])
    rest = iter(batch)
    result = [next(shape) if axis in offset else next(rest) for axis in range(kept + len(batch))]
    return draw.one_op([x, draw.given(starts, draw.pick(I32, I64), constant=draw.flag())], [like(x, result)], options)
