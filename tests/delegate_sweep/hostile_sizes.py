"""Models of about 1 KB of which an engine would make gigabytes, or minutes of work."""

from __future__ import annotations

import numpy as np

from oplet.schema import options as o
from oplet_testing import Graph, Op, Spec, graph_model

__all__ = ["HOSTILE"]


def _f32(*shape: int) -> Spec:
    return Spec("float32", list(shape))


def _ints(*values: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(values, np.int32)


def _tile() -> bytes:
    """One value, tiled to 4 GB."""
    tensors = {"x": _f32(1, 1), "n": _ints(32_000, 32_000), "a": _f32(32_000, 32_000), "y": _f32(32_000, 1), "axis": _ints(1)}
    return graph_model(
        Graph(tensors, "x", "y", [Op("TILE", "x n", "a"), Op("SUM", "a axis", "y", o.ReducerOptions(keep_dims=True))])
    )


def _alive() -> bytes:
    """Twelve tensors of 40 MB, all of them read at the end."""
    count, shape = 12, (10_000_000,)
    tensors = {"x": _f32(1), "n": _ints(*shape), **{f"t{i}": _f32(*shape) for i in range(count)}}
    tensors |= {"s": _f32(*shape), "y": _f32(1), "axis": _ints(0)}
    ops = [Op("TILE", "x n", "t0"), *(Op("NEG", f"t{i}", f"t{i + 1}") for i in range(count - 1))]
    ops.append(Op("ADD_N", " ".join(f"t{i}" for i in range(count)), "s", o.AddNOptions()))
    return graph_model(Graph(tensors, "x", "y", [*ops, Op("SUM", "s axis", "y", o.ReducerOptions(keep_dims=True))]))


def _patches(op: str) -> bytes:
    """Windows as large as the picture over a picture of 600 x 600, whose weights a FILL makes."""
    tensors = {
        "x": _f32(1, 1), "n": _ints(600, 600), "square": _f32(600, 600), "p": _ints(1, 600, 600, 1), "picture": _f32(1, 600, 600, 1),
        "one": np.array(1, np.float32), "shape": _ints(1, 255, 255, 1), "w": _f32(1, 255, 255, 1), "y": _f32(1, 600, 600, 1),
    }  # fmt: skip
    ops = [Op("TILE", "x n", "square"), Op("RESHAPE", "square p", "picture"), Op("FILL", "shape one", "w")]
    tensors["b"] = np.zeros(1, np.float32)
    if op == "CONV_2D":
        ops.append(Op(op, "picture w b", "y", o.Conv2DOptions(stride_h=1, stride_w=1)))
    elif op == "DEPTHWISE_CONV_2D":
        ops.append(Op(op, "picture w b", "y", o.DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1)))
    else:
        ops.append(Op(op, "picture", "y", o.Pool2DOptions(stride_h=1, stride_w=1, filter_height=500, filter_width=500)))
    used = {name for one in ops for name in f"{one.inputs} {one.outputs}".split()}
    return graph_model(Graph({name: spec for name, spec in tensors.items() if name in used}, "x", "y", ops))


def _product() -> bytes:
    """A product of a matrix of 2300 x 2300 that TILE makes with itself: 12,000,000,000 multiplications."""
    tensors = {
        "x": _f32(1, 1),
        "n": _ints(2300, 2300),
        "a": _f32(2300, 2300),
        "b": _f32(2300, 2300),
        "y": _f32(2300, 1),
        "axis": _ints(1),
    }
    summed = Op("SUM", "b axis", "y", o.ReducerOptions(keep_dims=True))
    ops = [Op("TILE", "x n", "a"), Op("BATCH_MATMUL", "a a", "b", o.BatchMatMulOptions()), summed]
    return graph_model(Graph(tensors, "x", "y", ops))


#: By name: what makes each.
HOSTILE = {
    "4 GB tiled from one value": _tile,
    "twelve tensors alive at once": _alive,
    "a convolution of large windows": lambda: _patches("CONV_2D"),
    "a depthwise convolution of large windows": lambda: _patches("DEPTHWISE_CONV_2D"),
    "an average over large windows": lambda: _patches("AVERAGE_POOL_2D"),
    "the largest of large windows": lambda: _patches("MAX_POOL_2D"),
    "a product of large matrices": _product,
}
