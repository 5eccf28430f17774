"""Models below a kilobyte whose shapes and options ask for millions of windows, groups, batches, taps, blocks, rows or boxes.

Run as a program, it runs one of them in this process, with the memory and the time that a server would allow it, and prints what came of it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from oplet import Interpreter, Limits
from oplet.errors import OpletError
from oplet.schema.enums import Padding, ReduceWindowFunction
from oplet.schema.options import (
    BatchToSpaceNDOptions,
    Conv2DOptions,
    Conv3DOptions,
    CumsumOptions,
    DepthwiseConv2DOptions,
    FillOptions,
    GatherOptions,
    NonMaxSuppressionV5Options,
    Pool2DOptions,
    ResizeBilinearOptions,
    SpaceToBatchNDOptions,
    TransposeConvOptions,
)
from oplet.schema.stablehlo_options import ReduceWindowOptions, StablehloConvolutionOptions, StablehloReduceWindowOptions
from oplet.schema.table import Table
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

#: What docs/reliability.md recommends to servers.
DOCUMENTED = Limits(
    max_arena_bytes=64 << 20, max_tensor_bytes=64 << 20, max_nodes=2_000, max_while_iterations=10_000, max_seconds=2.0
)
#: Address space that a model may take beyond what the process has before.
ROOM = 1 << 30


class Filled(NamedTuple):
    """A tensor that a FILL makes, so that its values take no room in the file; it counts as a constant."""

    type: str
    shape: tuple[int, ...]
    value: float = 1


class Case(NamedTuple):
    """A model, at any scale.

    Attributes:
        name: what it has many of.
        make: makes the model.
        large: the scale at which it is hostile.
        usual: a scale at which it runs within the default limits, with LiteRT's answer; 0 if LiteRT does not run it.
    """

    name: str
    make: Callable[[int], bytes]
    large: int
    usual: int = 0


def node(op: str, operands: list[Any], results: list[Spec], options: Table | None = None, body: Graph | None = None) -> bytes:
    """The bytes of a model of one node, before which its filled operands are made."""
    tensors: dict[str, Any] = {}
    ops, fed, names = [], [], []
    for number, operand in enumerate(operands):
        name = f"in{number}"
        names.append(name)
        if isinstance(operand, Filled):
            tensors[f"{name}.dims"] = np.array(operand.shape, np.int32)
            tensors[f"{name}.value"] = np.array(operand.value, operand.type)
            tensors[name] = Spec(operand.type, operand.shape)
            ops.append(Op("FILL", f"{name}.dims {name}.value", name, FillOptions()))
            continue
        tensors[name] = operand
        if isinstance(operand, Spec):
            fed.append(name)
    made = [f"out{number}" for number in range(len(results))]
    tensors.update(zip(made, results))
    ops.append(Op(op, " ".join(names), " ".join(made), options))
    return graph_model(Graph(tensors, " ".join(fed), " ".join(made), ops), *([body] if body else []))


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def longs(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def spec(type: str, *shape: int) -> Spec:
    return Spec(type, shape)


Sizes = tuple[int, ...]


def layer(op: str, options: Any, source: Sizes, weights: Sizes, output: Sizes) -> bytes:
    """A float32 layer whose weights and biases FILL makes, a bias for each channel of the output."""
    given = [spec("float32", *source), Filled("float32", weights), Filled("float32", output[-1:])]
    return node(op, given, [spec("float32", *output)], options)


def conv_groups(n: int) -> bytes:
    options = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1)
    return layer("CONV_2D", options, (1, 1, 2, n), (n, 1, 1, 1), (1, 1, 2, n))


def conv_windows(n: int) -> bytes:
    options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    return layer("CONV_2D", options, (1, n, n, 1), (1, n, n, 1), (1, n, n, 1))


def conv_hybrid_batches(n: int) -> bytes:
    weights = Spec("int8", (2, 1, 1, 1), scale=0.5, zero_point=0, data=np.ones((2, 1, 1, 1), np.int8))
    options = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1)
    tensors: dict[str, Any] = {
        "x": spec("float32", n, 1, 1, 1),
        "w": weights,
        "b": np.zeros(2, np.float32),
        "y": spec("float32", n, 1, 1, 2),
    }
    return graph_model(Graph(tensors, "x", "y", [Op("CONV_2D", "x w b", "y", options)]))


def depthwise_windows(n: int) -> bytes:
    options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1)
    return layer("DEPTHWISE_CONV_2D", options, (1, n, n, 2), (1, n, n, 2), (1, n, n, 2))


def depthwise_phases(n: int) -> bytes:
    options = DepthwiseConv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=n, depth_multiplier=1)
    return layer("DEPTHWISE_CONV_2D", options, (1, 1, n, 2), (1, 1, n, 2), (1, 1, 1, 2))


def conv_3d_batches(n: int) -> bytes:
    options = Conv3DOptions(padding=Padding.SAME, stride_d=1, stride_h=1, stride_w=1)
    return node(
        "CONV_3D", [spec("float32", n, 1, 1, 2, 1), Filled("float32", (1, 1, 2, 1, 1))], [spec("float32", n, 1, 1, 2, 1)], options
    )


def conv_3d_transpose_taps(n: int) -> bytes:
    options = Conv3DOptions(padding=Padding.VALID, stride_d=1, stride_h=1, stride_w=1)
    operands = [ints(1, n, n, n, 1), Filled("float32", (n, n, n, 1, 1)), spec("float32", 1, 1, 1, 1, 1)]
    return node("CONV_3D_TRANSPOSE", operands, [spec("float32", 1, n, n, n, 1)], options)


def transpose_conv_taps(n: int) -> bytes:
    options = TransposeConvOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    operands = [ints(1, 9 * n, 9 * n, 1), Filled("float32", (1, n, n, 1)), spec("float32", 1, 9 * n, 9 * n, 1)]
    return node("TRANSPOSE_CONV", operands, [spec("float32", 1, 9 * n, 9 * n, 1)], options)


def transpose_conv_batches(n: int) -> bytes:
    options = TransposeConvOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    return node(
        "TRANSPOSE_CONV",
        [ints(n, 2, 2, 1), Filled("float32", (1, 2, 2, 1)), spec("float32", n, 2, 2, 1)],
        [spec("float32", n, 2, 2, 1)],
        options,
    )


def batch_to_space(n: int) -> bytes:
    operands = [spec("int8", n, 1, 2, 1), ints(n, 1), np.zeros((2, 2), np.int32)]
    return node("BATCH_TO_SPACE_ND", operands, [spec("int8", 1, n, 2, 1)], BatchToSpaceNDOptions())


def space_to_batch(n: int) -> bytes:
    operands = [spec("int8", 1, 3, n, 1), ints(2, n), np.array([[0, 1], [1, n - 1]], np.int32)]
    return node("SPACE_TO_BATCH_ND", operands, [spec("int8", 2 * n, 2, 2, 1)], SpaceToBatchNDOptions())


def gather_batches(n: int) -> bytes:
    return node(
        "GATHER", [spec("float32", n, 2), spec("int32", n, 1)], [spec("float32", n, 1)], GatherOptions(axis=1, batch_dims=1)
    )


def cumsum_steps(n: int) -> bytes:
    return node("CUMSUM", [spec("float32", n, 64), ints(0)], [spec("float32", n, 64)], CumsumOptions())


def pool(op: str) -> Callable[[int], bytes]:
    def make(n: int) -> bytes:
        options = Pool2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, filter_height=1, filter_width=n)
        return node(op, [spec("float32", 1, 1, n, 1)], [spec("float32", 1, 1, n, 1)], options)

    return make


def pool_of_few(n: int) -> bytes:
    options = Pool2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1, filter_height=1, filter_width=n - 1)
    return node("MAX_POOL_2D", [spec("float32", 1, 1, n, 1)], [spec("float32", 1, 1, 2, 1)], options)


def reduce_window(n: int) -> bytes:
    operands = [spec("float32", n), np.zeros((), np.float32), longs(n // 2), longs(1), longs(1)]
    return node(
        "REDUCE_WINDOW",
        operands,
        [spec("float32", n - n // 2 + 1)],
        ReduceWindowOptions(reduce_function=ReduceWindowFunction.MAXIMUM),
    )


def reduce_window_body(*ops: str) -> Callable[[int], bytes]:
    """All values of a tensor and its padding in one window, folded by these operators."""

    def make(n: int) -> bytes:
        options = StablehloReduceWindowOptions(
            window_dimensions=longs(n), window_strides=longs(1), base_dilations=longs(1), window_dilations=longs(1),
            padding=longs(n // 2, n - n // 2 - 1), body_subgraph_index=1,
        )  # fmt: skip
        scalar = Spec("float32", ())
        chain = [Op(op, "b a" if not i else f"t{i - 1} a", f"t{i}") for i, op in enumerate(ops)]
        tensors = dict.fromkeys(("a", "b", *(f"t{i}" for i in range(len(ops)))), scalar)
        body = Graph(tensors, "a b", f"t{len(ops) - 1}", chain)
        return node(
            "STABLEHLO_REDUCE_WINDOW", [spec("float32", n), np.zeros((), np.float32)], [spec("float32", n)], options, body
        )

    return make


def stablehlo_convolution(groups: bool) -> Callable[[int], bytes]:
    def make(n: int) -> bytes:
        options = StablehloConvolutionOptions(
            input_batch_dimension=0, input_feature_dimension=1, input_spatial_dimensions=longs(2),
            kernel_output_feature_dimension=0, kernel_input_feature_dimension=1, kernel_spatial_dimensions=longs(2),
            output_batch_dimension=0, output_feature_dimension=1, output_spatial_dimensions=longs(2),
            feature_group_count=n if groups else 1, batch_group_count=1 if groups else n,
        )  # fmt: skip
        source = (1, n, 2) if groups else (n, 1, 2)
        operands = [spec("float32", *source), Filled("float32", (n, 1, 1))]
        return node("STABLEHLO_CONVOLUTION", operands, [spec("float32", 1, n, 2)], options)

    return make


def soft_suppression(n: int) -> bytes:
    options = NonMaxSuppressionV5Options()
    scalars = [np.array(0.5, np.float32), np.array(0, np.float32), np.array(0.5, np.float32)]
    operands = [spec("float32", n, 4), spec("float32", n), np.array(n, np.int32), *scalars]
    return node("NON_MAX_SUPPRESSION_V5", operands, [spec("int32", n), spec("float32", n), spec("int32")], options)


def resize_bilinear(n: int) -> bytes:
    return node(
        "RESIZE_BILINEAR", [spec("float32", 1, 1, 2, 1), ints(1, n)], [spec("float32", 1, 1, n, 1)], ResizeBilinearOptions()
    )


CASES = [
    Case("CONV_2D-groups", conv_groups, 1_000_000, 10_000),
    Case("CONV_2D-taps", conv_windows, 1_000, 20),
    Case("CONV_2D-hybrid-batches", conv_hybrid_batches, 1_000_000, 10_000),
    Case("DEPTHWISE_CONV_2D-taps", depthwise_windows, 1_000, 40),
    Case("DEPTHWISE_CONV_2D-phases", depthwise_phases, 4_000_000, 3_000),
    Case("CONV_3D-batches", conv_3d_batches, 1_500_000, 10_000),
    Case("CONV_3D_TRANSPOSE-taps", conv_3d_transpose_taps, 100, 20),
    Case("TRANSPOSE_CONV-taps", transpose_conv_taps, 100, 10),
    Case("TRANSPOSE_CONV-batches", transpose_conv_batches, 900_000, 10_000),
    Case("BATCH_TO_SPACE_ND-blocks", batch_to_space, 5_000_000, 100_000),
    Case("SPACE_TO_BATCH_ND-blocks", space_to_batch, 5_000_000, 100_000),
    Case("GATHER-batches", gather_batches, 3_000_000, 100_000),
    Case("CUMSUM-steps", cumsum_steps, 120_000, 10_000),
    Case("AVERAGE_POOL_2D-taps", pool("AVERAGE_POOL_2D"), 5_000_000, 1_000),
    Case("MAX_POOL_2D-taps", pool("MAX_POOL_2D"), 5_000_000, 1_000),
    Case("L2_POOL_2D-taps", pool("L2_POOL_2D"), 4_000_000, 1_000),
    Case("MAX_POOL_2D-long-windows", pool_of_few, 4_000_000, 100_000),
    Case("REDUCE_WINDOW-taps", reduce_window, 8_000_000),
    Case("STABLEHLO_REDUCE_WINDOW-taps", reduce_window_body("ADD"), 4_000_000, 1_000),
    Case("STABLEHLO_REDUCE_WINDOW-any-body", reduce_window_body("ADD", "MUL"), 4_000_000),
    Case("STABLEHLO_CONVOLUTION-groups", stablehlo_convolution(True), 1_000_000),
    Case("STABLEHLO_CONVOLUTION-batch-groups", stablehlo_convolution(False), 1_000_000),
    Case("NON_MAX_SUPPRESSION_V5-boxes", soft_suppression, 20_000, 100),
    Case("NON_MAX_SUPPRESSION_V5-many-boxes", soft_suppression, 2_000_000),
    Case("RESIZE_BILINEAR-outputs", resize_bilinear, 2_000_000, 10_000),
]


def feeds(interpreter: Any) -> dict[int, Any]:
    """A value for each input; the same for all runtimes."""
    made = {}
    for detail in interpreter.get_input_details():
        shape, count = detail["shape"], int(np.prod(detail["shape"]))
        if np.issubdtype(detail["dtype"], np.integer):
            made[detail["index"]] = value = np.ones(shape, detail["dtype"])
            value.reshape(-1)[::3] = 0
        else:
            made[detail["index"]] = np.random.default_rng(1).random(count, np.float32).reshape(shape)
    return made


def run(data: bytes, plugins: list[str] | None, limits: Limits) -> dict[str, Any]:
    """What came of a model: the error, if any, and how many seconds of processors `allocate_tensors` and `invoke` took."""
    found: dict[str, Any] = {"seconds": []}
    start = time.process_time()

    def lap() -> None:
        nonlocal start
        start, before = time.process_time(), start
        found["seconds"].append(round(start - before, 2))

    try:
        interpreter = Interpreter(model_content=data, limits=limits, plugins=plugins)
        start = time.process_time()
        try:
            interpreter.allocate_tensors()
        finally:
            lap()
        for index, value in feeds(interpreter).items():
            interpreter.set_tensor(index, value)
        start = time.process_time()
        try:
            interpreter.invoke()
        finally:
            lap()
    except OpletError as error:
        found["error"] = f"{type(error).__name__}: {error}"[:300]
    except BaseException as error:
        found["foreign"] = f"{type(error).__name__}: {error}"[:300]
    return found


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(name: str, plugin: str) -> None:
    """Run a case: small first, for what is made once, then large."""
    case = next(case for case in CASES if case.name == name)
    plugins = None if plugin == "all" else [plugin]
    warm = run(case.make(16), plugins, Limits())
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM,) * 2)
    data = case.make(case.large)
    before = _peak()
    found = run(data, plugins, DOCUMENTED)
    found.update(bytes=len(data), grown=_peak() - before, warm=warm)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
