"""Operators that pick values by number, or put them where numbers say."""

from __future__ import annotations

import numpy as np

from oplet import TensorType as T
from oplet.schema import options as o

from .kit import F32, Kind, Kit, recipe


@recipe("GATHER")
def gather(kit: Kit) -> None:
    for shape in kit.shapes(1):
        if shape[0]:
            for type in (T.INT16, T.INT32, T.INT64) if not kit.label else (T.INT32,):
                kit.add(
                    [kit.arg(shape), kit.ints([0, shape[0] - 1, 0], type)],
                    [kit.out(shape=(3, *shape[1:]))],
                    o.GatherOptions(axis=0),
                    f"{kit.label} by {type.name}",
                )
            kit.add(
                [kit.arg(shape), kit.ints(np.zeros((0,)))],
                [kit.out(shape=(0, *shape[1:]))],
                o.GatherOptions(axis=0),
                f"{kit.label} of nothing",
            )


@recipe("GATHER_ND")
def gather_nd(kit: Kit) -> None:
    for shape in kit.shapes(1):
        for type in (T.INT16, T.INT32, T.INT64) if not kit.label else (T.INT32,):
            if shape[0]:
                kit.add(
                    [kit.arg(shape), kit.ints([[0], [shape[0] - 1]], type)],
                    [kit.out(shape=(2, *shape[1:]))],
                    label=f"{kit.label} by {type.name}",
                )
        kit.add([kit.arg(shape), kit.ints(np.zeros((0, 1)))], [kit.out(shape=(0, *shape[1:]))], label=f"{kit.label} of nothing")


@recipe("SCATTER_ND")
def scatter_nd(kit: Kit) -> None:
    for shape in kit.shapes(1):
        if shape[0]:
            kit.add(
                [kit.ints([[0], [shape[0]]]), kit.arg((2, *shape[1:])), kit.ints([shape[0] + 2, *shape[1:]])],
                [kit.out(shape=(shape[0] + 2, *shape[1:]))],
            )
        kit.add(
            [kit.ints(np.zeros((0, 1))), kit.arg((0, *shape[1:])), kit.ints(shape)],
            [kit.out(shape=shape)],
            label=f"{kit.label} nothing",
        )


@recipe("EMBEDDING_LOOKUP")
def embedding_lookup(kit: Kit) -> None:
    for shape in kit.shapes(2):
        if shape[0]:
            y = kit.out(shape=(2, *shape[1:]))
            kit.add([kit.ints([0, shape[0] - 1]), kit.constant(shape)], [y])
            if kit.kind.quantized:
                kit.add(
                    [kit.ints([0, shape[0] - 1]), kit.constant(shape)],
                    [kit.out(F32, (2, *shape[1:]))],
                    label=f"{kit.label} to floats",
                )


@recipe("ONE_HOT")
def one_hot(kit: Kit) -> None:
    for shape in kit.shapes(0, usual=(3,)):
        for type in (T.INT32, T.INT64) if not kit.label else (T.INT32,):
            indices = kit.arg(shape, Kind(type), low=-1, high=5)
            kit.add(
                [indices, kit.ints(4), kit.constant(()), kit.constant(())],
                [kit.out(shape=(*shape, 4))],
                o.OneHotOptions(axis=-1),
                f"{kit.label} by {type.name}",
            )


@recipe("TOPK_V2")
def topk(kit: Kit) -> None:
    for shape in kit.shapes(1):
        for type in (T.INT16, T.INT32) if not kit.label else (T.INT32,):
            kit.add(
                [kit.arg(shape), kit.ints(min(2, shape[-1]), type)],
                [kit.out(shape=(*shape[:-1], 2)), kit.out(T.INT32, (*shape[:-1], 2))],
                label=f"{kit.label} by {type.name}",
            )


@recipe("UNIQUE")
def unique(kit: Kit) -> None:
    for shape in kit.shapes(1, usual=(6,)):
        for type in (T.INT32, T.INT64):
            kit.add(
                [
                    kit.arg(shape),
                ],
                [kit.out(shape=shape), kit.out(type, shape)],
                o.UniqueOptions(idx_out_type=type),
                f"{kit.label} {type.name}",
            )


@recipe("WHERE")
def where(kit: Kit) -> None:
    for shape in kit.shapes(0):
        kit.add([kit.arg(shape)], [kit.out(T.INT64, (1, len(shape)))])
