"""Operators that move values, and those that ask where they are."""

from __future__ import annotations

import numpy as np

from oplet import TensorType as T
from oplet.schema import options as o
from oplet.schema import stablehlo_options as s

from .kit import Kit, recipe


@recipe("RESHAPE")
def reshape(kit: Kit) -> None:
    for shape in kit.shapes():
        size = int(np.prod(shape))
        kit.add([kit.arg(shape), kit.ints([size])], [kit.out(shape=(size,))])
        kit.add([kit.arg(shape), kit.ints([-1])], [kit.out(shape=(size,))], label=f"{kit.label} to -1")
        kit.add([kit.arg(shape)], [kit.out(shape=(size,))], o.ReshapeOptions(new_shape=[-1]), f"{kit.label} to -1 in options")
        if shape:
            kit.add([kit.arg(shape), kit.ints([-1, shape[-1]])], [kit.out(shape=shape)], label=f"{kit.label} rows to -1")
            kit.add([kit.arg(shape), kit.ints([shape[0], -1])], [kit.out(shape=shape)], label=f"{kit.label} columns to -1")
        kit.add([kit.arg(shape), kit.ints([0, -1])], [kit.out(shape=shape)], label=f"{kit.label} to 0, -1")


@recipe("SQUEEZE")
def squeeze(kit: Kit) -> None:
    for shape in kit.shapes():
        kit.add([kit.arg((1, *shape))], [kit.out(shape=shape)], o.SqueezeOptions(squeeze_dims=[0]))
        kit.add([kit.arg((1, *shape))], [kit.out(shape=shape)], o.SqueezeOptions(), f"{kit.label} all")


@recipe("EXPAND_DIMS")
def expand_dims(kit: Kit) -> None:
    for shape in kit.shapes():
        kit.add([kit.arg(shape), kit.ints(-1)], [kit.out(shape=(*shape, 1))])


@recipe("SHAPE", "RANK")
def shape_of(kit: Kit) -> None:
    for shape in kit.shapes():
        rank = kit.op == "RANK"
        kit.add(
            [kit.arg(shape)],
            [kit.out(T.INT32, () if rank else (len(shape),))],
            None if rank else o.ShapeOptions(out_type=T.INT32),
        )


@recipe("TRANSPOSE")
def transpose(kit: Kit) -> None:
    for shape in kit.shapes(1):
        order = list(range(len(shape)))[::-1]
        kit.add([kit.arg(shape), kit.ints(order)], [kit.out(shape=shape[::-1])])


@recipe("REVERSE_V2")
def reverse(kit: Kit) -> None:
    for shape in kit.shapes(1):
        for axes in sorted({(0,), (len(shape) - 1,), tuple(range(len(shape)))}):
            kit.add([kit.arg(shape), kit.ints(axes)], [kit.out(shape=shape)], label=f"{kit.label} {axes}")


@recipe("REVERSE_SEQUENCE")
def reverse_sequence(kit: Kit) -> None:
    for shape in kit.shapes(2):
        kit.add(
            [kit.arg(shape), kit.ints([shape[1]] * shape[0])],
            [kit.out(shape=shape)],
            o.ReverseSequenceOptions(seq_dim=1, batch_dim=0),
        )


@recipe("TILE")
def tile(kit: Kit) -> None:
    for shape in kit.shapes(0):
        kit.add([kit.arg(shape), kit.ints([2] * len(shape))], [kit.out(shape=[2 * d for d in shape])])


@recipe("BROADCAST_TO")
def broadcast_to(kit: Kit) -> None:
    for shape in kit.shapes(0):
        kit.add([kit.arg(shape), kit.ints((2, *shape))], [kit.out(shape=(2, *shape))])
        if shape:
            kit.add([kit.arg((*shape[:-1], 1)), kit.ints(shape)], [kit.out(shape=shape)], label=f"{kit.label} column")


@recipe("FILL")
def fill(kit: Kit) -> None:
    for shape in kit.shapes(0):
        kit.add([kit.ints(shape), kit.arg(())], [kit.out(shape=shape)])


@recipe("CONCATENATION")
def concatenation(kit: Kit) -> None:
    for shape in kit.shapes(1):
        for axis in sorted({0, -1}):
            wide = list(shape)
            wide[axis] *= 2
            kit.add(
                [kit.arg(shape), kit.arg(shape)], [kit.out(shape=wide)], o.ConcatenationOptions(axis=axis), f"{kit.label} {axis}"
            )
    x = kit.arg((2, 3))
    kit.add([x, kit.arg((0, 3))], [kit.out(shape=(2, 3))], o.ConcatenationOptions(axis=0), "with nothing")
    kit.add(
        [x, kit.arg((2, 3)), kit.arg((2, 1)), kit.arg((2, 3)), kit.arg((2, 2))],
        [kit.out(shape=(2, 12))],
        o.ConcatenationOptions(axis=1),
        "five",
    )


@recipe("PACK")
def pack(kit: Kit) -> None:
    for shape in kit.shapes(0):
        kit.add([kit.arg(shape), kit.arg(shape)], [kit.out(shape=(2, *shape))], o.PackOptions(values_count=2, axis=0))


@recipe("UNPACK")
def unpack(kit: Kit) -> None:
    for shape in kit.shapes(1):
        if shape[0] in (1, 2):
            kit.add([kit.arg(shape)], [kit.out(shape=shape[1:]) for _ in range(shape[0])], o.UnpackOptions(num=shape[0], axis=0))


@recipe("SPLIT")
def split(kit: Kit) -> None:
    for shape in kit.shapes(1):
        half = (shape[0] // 2, *shape[1:])
        kit.add([kit.ints(0), kit.arg(shape)], [kit.out(shape=half), kit.out(shape=half)], o.SplitOptions(num_splits=2))
    for count in (3, 4):
        wide = (2, 12)
        kit.add(
            [kit.ints(1), kit.arg(wide)],
            [kit.out(shape=(2, 12 // count)) for _ in range(count)],
            o.SplitOptions(num_splits=count),
            f"in {count}",
        )


@recipe("SPLIT_V")
def split_v(kit: Kit) -> None:
    for shape in kit.shapes(1):
        if shape[0] == 2:
            parts = [kit.out(shape=(n, *shape[1:])) for n in (2, 0)]
            kit.add([kit.arg(shape), kit.ints([2, 0]), kit.ints(0)], parts, o.SplitVOptions(num_splits=2))
            parts = [kit.out(shape=(1, *shape[1:])) for n in (1, 1)]
            kit.add([kit.arg(shape), kit.ints([1, -1]), kit.ints(0)], parts, o.SplitVOptions(num_splits=2), f"{kit.label} -1")


@recipe("SLICE")
def slice_(kit: Kit) -> None:
    for shape in kit.shapes(1):
        size = (-1, *shape[1:])
        begin = [min(1, d) for d in shape[:1]] + [0] * (len(shape) - 1)
        kit.add([kit.arg(shape), kit.ints(begin), kit.ints(size)], [kit.out(shape=(max(shape[0] - 1, 0), *shape[1:]))])
        kit.add(
            [kit.arg(shape), kit.ints(begin, T.INT64), kit.ints(size, T.INT64)],
            [kit.out(shape=(max(shape[0] - 1, 0), *shape[1:]))],
            label=f"{kit.label} by int64",
        )


@recipe("STRIDED_SLICE")
def strided_slice(kit: Kit) -> None:
    for shape in kit.shapes(1):
        zeros, ones = [0] * len(shape), [1] * len(shape)
        kit.add(
            [kit.arg(shape), kit.ints(zeros), kit.ints(shape), kit.ints(ones)], [kit.out(shape=shape)], o.StridedSliceOptions()
        )
        kit.add(
            [kit.arg(shape), kit.ints(zeros), kit.ints(shape), kit.ints([-1, *ones[1:]])], [kit.out(shape=shape)],
            o.StridedSliceOptions(begin_mask=1, end_mask=1), f"{kit.label} backwards",
        )  # fmt: skip
        if shape[-1]:
            kit.add(
                [kit.arg(shape), kit.ints([0]), kit.ints([1]), kit.ints([1])], [kit.out(shape=shape[:-1])],
                o.StridedSliceOptions(shrink_axis_mask=1), f"{kit.label} shrunk",
            )  # fmt: skip


@recipe("PAD", "PADV2", "MIRROR_PAD", "STABLEHLO_PAD", "DILATE")
def pad(kit: Kit) -> None:
    for shape in kit.shapes(1):
        edges = [[1, 1]] + [[0, 0]] * (len(shape) - 1) if kit.op == "MIRROR_PAD" else [[1, 2]] + [[0, 1]] * (len(shape) - 1)
        y = kit.out(shape=tuple(sum(edge) + d for edge, d in zip(edges, shape)))
        x = kit.arg(shape)
        if kit.op == "PAD":
            kit.add([x, kit.ints(edges)], [y])
            kit.add([x, kit.ints(edges, T.INT64)], [y], label=f"{kit.label} by int64")
        elif kit.op == "PADV2":
            kit.add([x, kit.ints(edges), kit.constant(())], [y])
        elif kit.op == "MIRROR_PAD":
            kit.add([x, kit.ints(edges)], [y], o.MirrorPadOptions(mode=1))
        elif kit.op == "DILATE":
            kit.add([x, kit.ints([2] * len(shape)), kit.constant(())], [kit.out(shape=[max(2 * d - 1, 0) for d in shape])])
        else:
            options = s.StablehloPadOptions(
                edge_padding_low=[a for a, _ in edges], edge_padding_high=[b for _, b in edges], interior_padding=[0] * len(shape)
            )
            kit.add([x, kit.constant(())], [y], options)
            kit.add(
                [kit.arg((2, *shape)), kit.constant(())], [kit.out(shape=(2, *shape))], options, f"{kit.label} of another rank"
            )


@recipe("RANGE")
def range_(kit: Kit) -> None:
    if kit.kind.type is T.STRING:
        return
    for limit in (5, 0):
        parts = [kit.constant(()) for _ in range(3)]
        for part, value in zip(parts, (0, limit, 1)):
            assert part.data is not None
            part.data = np.full((), value).astype(part.data.dtype)
        kit.add(parts, [kit.out(shape=(max(limit, 1),))], label=f"to {limit}")


@recipe("MATRIX_DIAG")
def matrix_diag(kit: Kit) -> None:
    for shape in kit.shapes(1):
        kit.add([kit.arg(shape)], [kit.out(shape=(*shape, shape[-1]))])


@recipe("MATRIX_SET_DIAG")
def matrix_set_diag(kit: Kit) -> None:
    for shape in kit.shapes(2):
        kit.add([kit.arg(shape), kit.arg((*shape[:-2], min(shape[-2:])))], [kit.out(shape=shape)])


@recipe("DYNAMIC_UPDATE_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(kit: Kit) -> None:
    for shape in kit.shapes(0):
        part = (min(1, shape[0]), *shape[1:]) if shape else ()
        if kit.op == "DYNAMIC_UPDATE_SLICE":
            for type in (T.INT32, T.INT64):
                kit.add(
                    [kit.arg(shape), kit.arg(part), kit.ints([0] * len(shape), type)],
                    [kit.out(shape=shape)],
                    label=f"{kit.label} by {type.name}",
                )
        else:
            kit.add([kit.arg(shape), kit.arg(part), *(kit.ints(0) for _ in shape)], [kit.out(shape=shape)])


@recipe("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def blocks(kit: Kit) -> None:
    options = o.SpaceToDepthOptions if kit.op == "SPACE_TO_DEPTH" else o.DepthToSpaceOptions
    for shape in ((1, 4, 2, 4), (0, 4, 2, 4), (1, 0, 2, 4), (1, 4, 2, 0)):
        kit.add([kit.arg(shape)], [kit.out(shape=shape)], options(block_size=2), str(list(shape)))


@recipe("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def batches(kit: Kit) -> None:
    for shape in ((4, 2, 2, 3), (4, 2, 3), (4, 0, 2, 3), (4, 2, 2, 0), (4, 2, 2, 2, 3)):
        spatial = len(shape) - 2
        kit.add(
            [kit.arg(shape), kit.ints([2] + [1] * (spatial - 1)), kit.ints([[0, 0]] * spatial)],
            [kit.out(shape=shape)],
            label=str(list(shape)),
        )


@recipe("SPARSE_TO_DENSE")
def sparse_to_dense(kit: Kit) -> None:
    for type in (T.INT32, T.INT64):
        kit.add(
            [kit.ints([[0, 1], [1, 2]], type), kit.ints([2, 3], type), kit.arg((2,)), kit.constant(())],
            [kit.out(shape=(2, 3))],
            label=f"by {type.name}",
        )
    kit.add(
        [kit.ints(np.zeros((0, 2))), kit.ints([2, 3]), kit.arg((0,)), kit.constant(())], [kit.out(shape=(2, 3))], label="nothing"
    )


@recipe("SEGMENT_SUM")
def segment_sum(kit: Kit) -> None:
    for shape in kit.shapes(1):
        if shape[0] == 2:
            kit.add([kit.arg(shape), kit.ints([0, 1])], [kit.out(shape=shape)])
    kit.add([kit.arg((0, 3)), kit.ints(np.zeros((0,)))], [kit.out(shape=(0, 3))], label="nothing")


@recipe("UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN")
def unsorted_segments(kit: Kit) -> None:
    for shape in kit.shapes(1):
        kit.add([kit.arg(shape), kit.ints([1] * shape[0]), kit.ints(3)], [kit.out(shape=(3, *shape[1:]))])


@recipe("STABLEHLO_GATHER")
def stablehlo_gather(kit: Kit) -> None:
    for shape in kit.shapes(1):
        if not shape[0]:
            continue
        rank = len(shape)
        options = s.StablehloGatherOptions(
            offset_dims=list(range(1, rank)), collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1,
            slice_sizes=[1, *shape[1:]],
        )  # fmt: skip
        for type in (T.INT32, T.INT64):
            kit.add(
                [kit.arg(shape), kit.ints([[0], [shape[0] - 1]], type)],
                [kit.out(shape=(2, *shape[1:]))],
                options,
                f"{kit.label} by {type.name}",
            )


@recipe(
    "STABLEHLO_SLICE",
    "STABLEHLO_DYNAMIC_SLICE",
    "STABLEHLO_TRANSPOSE",
    "STABLEHLO_RESHAPE",
    "STABLEHLO_BROADCAST_IN_DIM",
    "STABLEHLO_CONCATENATE",
)
def stablehlo_shapes(kit: Kit) -> None:
    for shape in kit.shapes(1):
        rank = len(shape)
        x = kit.arg(shape)
        if kit.op == "STABLEHLO_SLICE":
            kit.add(
                [x],
                [kit.out(shape=shape)],
                s.StablehloSliceOptions(start_indices=[0] * rank, limit_indices=shape, strides=[1] * rank),
            )
        elif kit.op == "STABLEHLO_DYNAMIC_SLICE":
            kit.add([x, *(kit.ints(0) for _ in shape)], [kit.out(shape=shape)], s.StablehloDynamicSliceOptions(slice_sizes=shape))
        elif kit.op == "STABLEHLO_TRANSPOSE":
            kit.add([x], [kit.out(shape=shape[::-1])], s.StablehloTransposeOptions(permutation=list(range(rank))[::-1]))
        elif kit.op == "STABLEHLO_RESHAPE":
            kit.add([x], [kit.out(shape=shape[::-1])])
        elif kit.op == "STABLEHLO_CONCATENATE":
            kit.add([x, kit.arg(shape)], [kit.out(shape=(2 * shape[0], *shape[1:]))], s.StablehloConcatenateOptions(dimension=0))
        else:
            kit.add(
                [x], [kit.out(shape=(2, *shape))], s.StablehloBroadcastInDimOptions(broadcast_dimensions=list(range(1, rank + 1)))
            )


@recipe("STABLEHLO_IOTA")
def iota(kit: Kit) -> None:
    kit.add([], [kit.out(shape=(2, 3))], s.StablehloIotaOptions(iota_dimension=1))
