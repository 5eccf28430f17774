"""Operators that make, move, select and count elements give what TensorFlow gives, and refuse what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.flex_ops.tests.sweeps import Case, difference, dtype_of

from oplet import TensorType as T
from oplet.errors import OpletError
from oplet_testing import Spec, call_op

rng = np.random.default_rng(7)
I32, I64 = np.int32, np.int64
#: A type of each kind.
KINDS = (T.FLOAT64, T.UINT32, T.COMPLEX128, T.STRING)
PLAIN = (T.FLOAT64, T.FLOAT32, T.INT16, T.UINT8, T.INT64)


def values(type: T, *shape: int, low: int = -4, high: int = 5) -> Any:
    """Few different values, so that some are equal."""
    whole = rng.integers(0 if "UINT" in type.name else low, high, shape)
    if type == T.STRING:
        return np.array([b"%d" % each for each in whole.ravel()] or [b""], object)[: whole.size].reshape(shape)
    if type == T.BOOL:
        return whole > 0
    found = whole.astype(dtype_of(type))
    return found + np.array(1j).astype(found.dtype) * rng.integers(-2, 3, shape) if found.dtype.kind == "c" else found


def ints(*given: int, type: Any = I32) -> Any:
    return np.array(given, type)


def scalar(value: Any, type: Any = I32) -> Any:
    return np.array(value, type)


def shapes() -> Iterator[Case]:
    for type in KINDS:
        for shape in ((), (3,), (2, 0, 4)):
            x = values(type, *shape)
            for out in (T.INT32, T.INT64):
                yield Case("Shape", [x], {"T": type, "out_type": out})
                yield Case("Size", [x], {"T": type, "out_type": out})
                yield Case("ShapeN", [x, values(type, 2)], {"T": type, "out_type": out, "N": 2}, 2)
            yield Case("Rank", [x], {"T": type})
            for wanted in (shape, (-1,) * len(shape), (7,)):
                yield Case("EnsureShape", [x], {"T": type, "shape": wanted})
    for a, b in (([2, 3], [3]), ([1, 3], [2, 1]), ([], [4]), ([2], [3]), ([2, 1], [2, 1]), ([0, 1], [3]), ([1], [1, 1])):
        for out, kind in ((T.INT32, I32), (T.INT64, I64)):
            yield Case("BroadcastArgs", [np.array(a, kind), np.array(b, kind)], {"T": out})
            yield Case("BroadcastGradientArgs", [np.array(a, kind), np.array(b, kind)], {"T": out}, 2)
    for axis, first, second in (
        (1, [2, 3], [2, 5]),
        (-1, [2, 3], [2, 5]),
        (0, [2, 3], [2, 5]),
        (2, [2, 3], [2, 5]),
        (0, [2], [2, 3]),
    ):
        inputs = [scalar(axis), np.array(first, I32), np.array(second, I32)]
        yield Case("ConcatOffset", inputs, {"N": 2, "shape_type": T.INT32}, 2)


def passing() -> Iterator[Case]:
    for type in KINDS:
        x = values(type, 2, 3)
        for op in ("Identity", "StopGradient", "PreventGradient", "GuaranteeConst"):
            yield Case(op, [x], {"T": type})
        yield Case("IdentityN", [x, values(T.BOOL, 2)], {"T": [type, T.BOOL]}, 2)
        for wanted in ((2, -1), None, (3,)):
            yield Case("PlaceholderWithDefault", [x], {"dtype": type, "shape": wanted})
    for type in (T.FLOAT32, T.FLOAT64):
        yield Case("DeepCopy", [values(type, 3)], {"T": type})
        yield Case("Snapshot", [values(type, 3)], {"T": type})
    for old in (T.FLOAT64, T.FLOAT32, T.INT16, T.UINT8, T.COMPLEX64):
        for new in (T.FLOAT64, T.INT32, T.UINT16, T.INT8, T.COMPLEX128):
            for shape in ((2, 2), (3, 8), (2, 4), (), (0, 2)):
                yield Case("Bitcast", [values(old, *shape)], {"T": old, "type": new})
    for type in (T.FLOAT32, T.FLOAT64, T.FLOAT16):
        for item in (1, np.nan, np.inf, -np.inf):
            x = np.array([1, item, 2], dtype_of(type))
            for op in ("CheckNumerics", "CheckNumericsV2"):
                yield Case(op, [x], {"T": type, "message": "here"})


def creation() -> Iterator[Case]:
    for type in (*KINDS, T.BOOL):
        yield Case("Fill", [ints(2, 3), values(type)], {"T": type})
        yield Case("Fill", [ints(0, 3, type=I64), values(type)], {"T": type, "index_type": T.INT64})
        yield Case("Fill", [ints(2, -3), values(type)], {"T": type})
        yield Case("ZerosLike", [values(type, 2, 2)], {"T": type})
        if type != T.STRING:
            yield Case("OnesLike", [values(type, 2, 2)], {"T": type})
        yield Case("Empty", [ints(2, 3)], {"dtype": type, "init": True})
        for shape, wanted in (((3,), (2, 3)), ((1, 2), (4, 2)), ((), (2, 2)), ((2, 1, 1), (2, 3, 1)), ((3,), (2,)), ((1,), (0,))):
            yield Case("BroadcastTo", [values(type, *shape), ints(*wanted)], {"T": type, "Tidx": T.INT32})
        for axis in (-1, 0, 1, 2, 5):
            indices = rng.integers(-1, 4, (2, 3))
            yield Case("OneHot", [indices, scalar(3), values(type), values(type)], {"T": type, "TI": T.INT64, "axis": axis})
    for type in (T.FLOAT64, T.FLOAT32, T.INT32, T.INT64, T.COMPLEX64):
        for shape in ((3,), (2, 3), ()):
            yield Case("Diag", [values(type, *shape)], {"T": type})
        for shape in ((3, 3), (2, 3, 2, 3), (2, 3), (3,)):
            yield Case("DiagPart", [values(type, *shape)], {"T": type})
    for type in (T.FLOAT32, T.FLOAT64, T.INT32, T.INT64):
        kind = dtype_of(type)
        for start, limit, delta in ((0, 10, 3), (5, -3, -2), (0, 1, 0), (3, 1, 1), (0.1, 3.7, 0.3), (2, 2, 1), (-1.5, 900, 0.7)):
            yield Case("Range", [scalar(each, kind) for each in (start, limit, delta)], {"Tidx": type})
    for type in (T.FLOAT32, T.FLOAT64):
        for start, stop, count in ((0, 1, 5), (3.3, -7.7, 101), (2, 9, 1), (1, 2, 0), (5, 5, 3), (-1, 2, 2)):
            inputs = [scalar(start, dtype_of(type)), scalar(stop, dtype_of(type)), scalar(count)]
            yield Case("LinSpace", inputs, {"T": type, "Tidx": T.INT32})


def layout() -> Iterator[Case]:
    for type in KINDS:
        x = values(type, 2, 3, 4)
        for sizes in ((24,), (-1, 6), (4, -1, 2), (5, 5), (-1, -1), (-1, 7), (2, 3, 4, 1)):
            yield Case("Reshape", [x, ints(*sizes)], {"T": type, "Tshape": T.INT32})
        yield Case("Reshape", [values(type, 0, 3), ints(-1, 3)], {"T": type, "Tshape": T.INT32})
        yield Case("Reshape", [values(type, 0, 3), ints(-1, 0)], {"T": type, "Tshape": T.INT32})
        for axis in (0, 1, 3, -1, -4, 4, -5):
            yield Case("ExpandDims", [x, scalar(axis)], {"T": type, "Tdim": T.INT32})
        for dims in ((), (0,), (2,), (0, -1), (1,)):
            yield Case("Squeeze", [values(type, 1, 3, 1)], {"T": type, "squeeze_dims": list(dims)} if dims else {"T": type})
        for order in ((2, 0, 1), (0, 1, 2), (1, 0), (0, 0, 1), (0, 1, 3)):
            for op in ("Transpose", "ConjugateTranspose"):
                yield Case(op, [x, ints(*order)], {"T": type, "Tperm": T.INT32})
        for axes in ((0,), (2, 0), (-1,), (), (1, 1), (3,)):
            yield Case("ReverseV2", [x, ints(*axes)], {"T": type, "Tidx": T.INT32})
        for dims in ((True, False, True), (False, False, False), (True,)):
            yield Case("Reverse", [x, np.array(dims)], {"T": type})
        for shift, axis in (((1,), (0,)), ((-5, 3), (1, 2)), ((1, 1), (0, 0)), ((2,), (-1,)), ((1,), (3,)), ((1, 2), (0,))):
            yield Case("Roll", [x, ints(*shift), ints(*axis, type=I64)], {"T": type, "Tshift": T.INT32, "Taxis": T.INT64})
        yield Case("Roll", [values(type, 5), scalar(2), scalar(0)], {"T": type, "Tshift": T.INT32, "Taxis": T.INT32})
        for multiples in ((1, 2, 3), (0, 1, 1), (2, 2), (-1, 1, 1)):
            yield Case("Tile", [x, ints(*multiples)], {"T": type, "Tmultiples": T.INT32})


def joining() -> Iterator[Case]:
    for type in KINDS:
        for axis in (0, 1, -1, 2):
            for sizes in (((2, 3), (2, 3)), ((2, 3), (2, 1)), ((0, 3), (4, 3)), ((2,), (2, 1))):
                parts = [values(type, *shape) for shape in sizes]
                yield Case("ConcatV2", [*parts, scalar(axis)], {"T": type, "N": 2, "Tidx": T.INT32})
                yield Case("Concat", [scalar(axis), *parts], {"T": type, "N": 2})
                yield Case("Pack", parts, {"T": type, "N": 2, "axis": axis})
        x = values(type, 4, 6)
        for axis, count in ((0, 2), (1, 3), (-1, 6), (0, 3), (2, 2)):
            yield Case("Split", [scalar(axis), x], {"T": type, "num_split": count}, count)
        for axis, sizes in ((1, (1, 2, 3)), (0, (-1, 1)), (1, (0, 6)), (1, (2, 2)), (0, (-1, -1)), (0, (5, -1))):
            inputs = [x, ints(*sizes), scalar(axis)]
            yield Case("SplitV", inputs, {"T": type, "num_split": len(sizes), "Tlen": T.INT32}, len(sizes))
        for axis, count in ((0, 4), (1, 6), (-1, 6), (0, 3), (2, 1)):
            yield Case(
                "Unpack",
                [
                    x,
                ],
                {"T": type, "num": count, "axis": axis},
                count,
            )


def padding() -> Iterator[Case]:
    for type in (*PLAIN, T.STRING, T.COMPLEX64):
        x = values(type, 3, 4)
        for pads in ([[1, 2], [0, 3]], [[0, 0], [0, 0]], [[2, 2], [3, 3]], [[3, 0], [0, 4]], [[-1, 0], [0, 0]], [[1, 1]]):
            given = {"T": type, "Tpaddings": T.INT32}
            paddings = np.array(pads, I32)
            yield Case("Pad", [x, paddings], given)
            if type != T.STRING:
                yield Case("PadV2", [x, paddings, values(type)], given)
            for mode in ("REFLECT", "SYMMETRIC"):
                yield Case("MirrorPad", [x, paddings], {**given, "mode": mode})
                if type in PLAIN:
                    yield Case("MirrorPadGrad", [values(type, 6, 9), paddings], {**given, "mode": mode})


def slicing() -> Iterator[Case]:
    for type in (T.FLOAT64, T.INT8, T.STRING, T.COMPLEX64):
        x = values(type, 4, 5, 6)
        for begin, size in (
            ((0, 1, 2), (2, 3, -1)),
            ((1, 1, 1), (0, 4, 5)),
            ((0, 0, 5), (1, 1, 2)),
            ((-1, 0, 0), (1, 1, 1)),
            ((0,), (1,)),
        ):
            yield Case("Slice", [x, ints(*begin), ints(*size)], {"T": type, "Index": T.INT32})
    x = values(T.FLOAT64, 4, 5, 6)
    for _ in range(250):
        count = int(rng.integers(0, 5))
        begin, end = rng.integers(-7, 8, (2, count)).astype(I32)
        strides = rng.choice(np.array([-3, -2, -1, 1, 1, 1, 2, 3], I32), count)
        masks = {name: int(rng.integers(0, 16) & rng.integers(0, 16)) for name in ("begin_mask", "end_mask", "shrink_axis_mask")}
        masks["new_axis_mask"] = int(rng.integers(0, 16) & rng.integers(0, 16) & rng.integers(0, 16))
        masks["ellipsis_mask"] = int(rng.choice([0, 0, 1, 2, 4, 3]))
        yield Case("StridedSlice", [x, begin, end, strides], {"T": T.FLOAT64, "Index": T.INT32, **masks})
    for begin, end, strides, shape in (
        ((1, 0), (3, 5), (1, 2), (2, 3)),
        ((3, 4), (0, 0), (-1, -2), (3, 2)),
        ((0, 0), (9, 9), (1, 1), (2, 2)),
    ):
        entries = [ints(*begin), ints(*end), ints(*strides)]
        given = {"T": T.FLOAT64, "Index": T.INT32}
        y = values(T.FLOAT64, *shape)
        yield Case("StridedSliceGrad", [ints(4, 5), *entries, y], given)
        yield Case("TensorStridedSliceUpdate", [values(T.FLOAT64, 4, 5), *entries, y], given)


def blocks() -> Iterator[Case]:
    for type in (T.FLOAT64, T.INT16, T.COMPLEX64):
        x = values(type, 4, 4, 6, 2)
        for sizes, edges in (
            ([2, 2], [[0, 0], [0, 0]]),
            ([2, 3], [[1, 1], [2, 1]]),
            ([2, 1], [[1, 0], [0, 0]]),
            ([0, 1], [[0, 0], [0, 0]]),
        ):
            given = {"T": type, "Tblock_shape": T.INT32, "Tpaddings": T.INT32, "Tcrops": T.INT32}
            yield Case(
                "SpaceToBatchND", [x, ints(*sizes), np.array(edges, I32)], {k: v for k, v in given.items() if k != "Tcrops"}
            )
            yield Case(
                "BatchToSpaceND", [x, ints(*sizes), np.array(edges, I32)], {k: v for k, v in given.items() if k != "Tpaddings"}
            )
        yield Case(
            "SpaceToBatchND", [x, ints(2), np.array([[1, 1]], I32)], {"T": type, "Tblock_shape": T.INT32, "Tpaddings": T.INT32}
        )
        for edges in ([[0, 0], [0, 0]], [[1, 1], [2, 0]], [[9, 9], [0, 0]]):
            yield Case("SpaceToBatch", [x, np.array(edges, I32)], {"T": type, "Tpaddings": T.INT32, "block_size": 2})
            yield Case("BatchToSpace", [x, np.array(edges, I32)], {"T": type, "Tidx": T.INT32, "block_size": 2})
        for block in (2, 3, 4):
            yield Case("SpaceToDepth", [x], {"T": type, "block_size": block})
            yield Case("DepthToSpace", [values(type, 1, 2, 3, 16)], {"T": type, "block_size": block})


def gathering() -> Iterator[Case]:
    for type in KINDS:
        x = values(type, 3, 4, 5)
        good, bad = rng.integers(0, 3, (2, 2)).astype(I32), ints(0, 3)
        for indices in (good, bad, ints(), scalar(1), ints(-1)):
            yield Case("Gather", [x, indices], {"Tparams": type, "Tindices": T.INT32})
        for axis, batch in ((0, 0), (1, 0), (-1, 0), (1, 1), (2, 1), (3, 0), (2, 2)):
            indices = rng.integers(0, 3, (3, 2)).astype(I64)
            given = {"Tparams": type, "Tindices": T.INT64, "Taxis": T.INT32, "batch_dims": batch}
            yield Case("GatherV2", [x, indices, scalar(axis)], given)
        for indices in ([[0, 1], [2, 3]], [[0, 1, 4]], [[2]], [0, 1], [[0, 4]], [[-1, 0]], np.zeros((0, 2))):
            for policy in ("", "IGNORE"):
                given = {"Tparams": type, "Tindices": T.INT32, "bad_indices_policy": policy}
                yield Case("GatherNd", [x, np.array(indices, I32)], given)
    for type in (T.FLOAT64, T.FLOAT32, T.FLOAT16, T.INT8, T.COMPLEX64, T.STRING):
        for indices in ([[0], [2], [2]], [[1], [3]], [[-1], [0]], [[0, 1], [2, 2], [0, 1]], [[0, 5]]):
            places = np.array(indices, I32)
            updates = values(type, len(indices), *((4,) if places.shape[1] == 1 else ()))
            for policy in ("", "IGNORE"):
                given = {"T": type, "Tindices": T.INT32, "bad_indices_policy": policy}
                yield Case("ScatterNd", [places, updates, ints(3, 4)], given)
                for op in ("Add", "Sub", "Max", "Min", "Update"):
                    if type not in (T.STRING, T.COMPLEX64) or op == "Update":
                        yield Case(f"TensorScatter{op}", [values(type, 3, 4), places, updates], given)
                if type != T.STRING:
                    yield Case("ScatterNdNonAliasingAdd", [values(type, 3, 4), places, updates], given)


def segments() -> Iterator[Case]:
    for type in (*PLAIN, T.FLOAT16, T.COMPLEX64):
        for ids in ([0, 0, 2, 2, 3], [1, 1, 1, 4, 4], [0, 1, 0, 2, 2], [-1, 0, 1, 2, 3], [0, 1]):
            for op in ("Sum", "Mean", "Max", "Min", "Prod"):
                if (type == T.COMPLEX64 and op in ("Max", "Min")) or (op == "Mean" and type not in (T.FLOAT32, T.FLOAT64)):
                    continue
                yield Case(f"Segment{op}", [values(type, 5, 3), np.array(ids, I32)], {"T": type, "Tindices": T.INT32})
        for ids, count in (([0, 0, 2, 2, 3], 4), ([3, -1, 1, 3, 0], 6), ([0, 1, 2, 3, 4], 4), ([0, 0], 3), ([0] * 5, -1)):
            for op in ("Sum", "Max", "Min", "Prod"):
                if type == T.COMPLEX64 and op in ("Max", "Min"):
                    continue
                given = {"T": type, "Tindices": T.INT32, "Tnumsegments": T.INT32}
                yield Case(f"UnsortedSegment{op}", [values(type, 5, 3), np.array(ids, I32), scalar(count)], given)
                both = rng.integers(-1, 3, (5, 3)).astype(I32)
                yield Case(f"UnsortedSegment{op}", [values(type, 5, 3), both, scalar(3)], given)
    for type in KINDS:
        for partitions in ([0, 1, 1, 0, 2], [0, 0, 0, 0, 0], [0, 1, 1, 0, 3], [-1, 0, 0, 0, 0], [0, 1]):
            yield Case("DynamicPartition", [values(type, 5, 2), np.array(partitions, I32)], {"T": type, "num_partitions": 3}, 3)
        yield Case("DynamicPartition", [values(type, 2), ints(0, 0)], {"T": type, "num_partitions": 1}, 1)
        for first, second in (([0, 3], [[1, 2]]), ([0, 0], [[1, 2]]), ([-1, 0], [[1, 2]])):
            data = [values(type, 2, 3), values(type, 1, 2, 3)]
            for op in ("DynamicStitch", "ParallelDynamicStitch"):
                yield Case(op, [np.array(first, I32), np.array(second, I32), *data], {"T": type, "N": 2})


def counting() -> Iterator[Case]:
    for type in (*PLAIN, T.STRING, T.BOOL):
        for shape in ((9,), (0,), (1,), (2, 3)):
            x = values(type, *shape)
            for out in (T.INT32, T.INT64):
                given = {"T": type, "out_idx": out}
                yield Case("Unique", [x], given, 2)
                yield Case("UniqueWithCounts", [x], given, 3)
        for axis in ((), (0,), (1,), (-1,), (2,), (0, 1)):
            x = values(type, 5, 3, low=0, high=2)
            given = {"T": type, "out_idx": T.INT32, "Taxis": T.INT32}
            yield Case("UniqueV2", [x, ints(*axis)], given, 2)
            yield Case("UniqueWithCountsV2", [x, ints(*axis)], given, 3)
        if type != T.BOOL:
            given = {"T": type, "out_idx": T.INT32}
            yield Case("ListDiff", [values(type, 9), values(type, 4)], given, 2)
            yield Case("ListDiff", [values(type, 3), values(type, 0)], given, 2)
    nan = np.array([1, np.nan, -0.0, 0.0, np.nan, 1])
    yield Case("Unique", [nan], {"T": T.FLOAT64}, 2)
    for x in ([2, 0, 1], [0, 0, 1], [0, 3, 1], [], [-1, 0]):
        yield Case("InvertPermutation", [np.array(x, I32)], {"T": T.INT32})
        yield Case("InvertPermutation", [np.array(x, I64)], {"T": T.INT64})
    for type in (T.INT32, T.INT64, T.FLOAT32, T.FLOAT64):
        for size in (4, 0, 9, -1):
            for shape in ((7,), (2, 5)):
                x = rng.integers(0, 8, shape).astype(I32)
                for weights in (values(type, 0), values(type, *shape), values(type, 3)):
                    yield Case("Bincount", [x, scalar(size), weights], {"T": type})
                    for binary in (False, True):
                        yield Case(
                            "DenseBincount", [x, scalar(size), weights], {"T": type, "Tidx": T.INT32, "binary_output": binary}
                        )
        yield Case("Bincount", [ints(1, -1), scalar(3), values(type, 0)], {"T": type})
        kind = dtype_of(type)
        for low, high, count in ((0, 5, 5), (-2, 2, 3), (1, 1, 3), (0, 5, 0), (-3, 4, 7)):
            x = (rng.normal(size=40) * 4).astype(kind)
            for out in (T.INT32, T.INT64):
                inputs = [x, np.array([low, high], kind), scalar(count)]
                yield Case("HistogramFixedWidth", inputs, {"T": type, "dtype": out})


def selection() -> Iterator[Case]:
    for type in (*KINDS, T.BOOL):
        if type not in (T.STRING, T.FLOAT16):  # for which TensorFlow has no kernel
            for shape in ((3, 4), (0, 2), (5,)):
                yield Case("Where", [values(type, *shape)], {"T": type})
        for condition, shape in (((3, 4), (3, 4)), ((3,), (3, 4)), ((), (3, 4)), ((4,), (3, 4)), ((1, 4), (3, 4))):
            inputs = [values(T.BOOL, *condition), values(type, *shape), values(type, *shape)]
            yield Case("Select", inputs, {"T": type})
            yield Case("SelectV2", inputs, {"T": type})
        yield Case("SelectV2", [values(T.BOOL, 3, 1), values(type, 4), values(type)], {"T": type})
    for type in (T.INT32, T.INT64, T.FLOAT32, T.FLOAT64):
        x = np.concatenate([(rng.normal(size=20) * 5).astype(dtype_of(type)), values(type, 5)])
        for boundaries in ([-2.0, 0.0, 0.5, 3.0], [1.0, 0.0], [0.0]):
            yield Case("Bucketize", [x], {"T": type, "boundaries": boundaries})
        for out in (T.INT32, T.INT64):
            for op in ("LowerBound", "UpperBound"):
                table = np.sort(values(type, 2, 7), 1)
                yield Case(op, [table, values(type, 2, 9)], {"T": type, "out_type": out})
                yield Case(op, [table, values(type, 3, 9)], {"T": type, "out_type": out})
    for type in (*PLAIN, T.FLOAT16, T.UINT32):
        x = values(type, 3, 8)
        for k in (0, 1, 3, 8, 9, -1):
            yield Case("TopKV2", [x, scalar(k)], {"T": type, "sorted": True, "Tk": T.INT32, "index_type": T.INT32}, 2)
            for reverse in (False, True):
                yield Case("NthElement", [x, scalar(k)], {"T": type, "reverse": reverse})
    for k in (1, 2, 9, 0):
        predictions = rng.normal(size=(6, 4)).astype(np.float32)
        predictions[1, 2], predictions[2, 0] = np.nan, np.inf
        targets = ints(0, 1, 2, 3, 4, -1)
        yield Case("InTopK", [predictions, targets], {"T": T.INT32, "k": k})
        yield Case("InTopKV2", [predictions, targets.astype(I64), scalar(k, I64)], {"T": T.INT64})


SWEEPS = [shapes, passing, creation, layout, joining, padding, slicing, blocks, gathering, segments, counting, selection]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", SWEEPS)
def test_they_agree_with_tensorflow(cases: Callable[[], Iterator[Case]]) -> None:
    assert max(difference(case) for case in cases()) < 1e-6


@pytest.mark.parametrize("op", ["Pack", "ConcatV2", "DynamicStitch", "ParallelDynamicStitch", "ShapeN"])
def test_no_inputs_at_all_are_refused(op: str) -> None:
    with pytest.raises(OpletError, match="the attribute 'N' of .* is 0; it must be at least 1"):
        call_op(f"Flex{op}", [np.int32(0)] * (op == "ConcatV2"), [Spec("int32", [1])], custom_options=flex_options(op, {"N": 0}))
