"""Scaling of latency with the batch size and with the number of threads.

    python -m benchmarks.scaling FOLDER [--rounds N] [--batches N ...] [--threads N ...]

Batches are measured on a small net made here, whose graph holds no fixed shapes; threads on the models of FOLDER with more than 50 million
multiply-adds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import common, runners  # first: it has BLAS use one thread
from benchmarks.latency import ratio_of

import numpy as np  # isort: skip

__all__ = ["batches", "multiply_adds", "threads"]

_KINDS = ("oplet-numpy", "oplet-compiled", "litert", "litert-xnnpack")
_LARGE = 50_000_000


def small_net(size: int = 56, channels: int = 32, blocks: int = 4) -> bytes:
    """Blocks of a depthwise and a pointwise convolution, each with a residual addition."""
    from oplet import ModelBuilder
    from oplet.schema.enums import ActivationFunctionType, Padding
    from oplet.schema.options import AddOptions, Conv2DOptions, DepthwiseConv2DOptions

    random = np.random.default_rng(0)
    relu6 = ActivationFunctionType.RELU6
    depthwise_options = DepthwiseConv2DOptions(
        padding=Padding.SAME, stride_w=1, stride_h=1, depth_multiplier=1, fused_activation_function=relu6
    )
    pointwise_options = Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1)
    builder = ModelBuilder("small net")
    graph = builder.add_subgraph()

    def tensor(name: str) -> int:
        return graph.add_tensor(name, np.float32, [1, size, size, channels], shape_signature=[-1, size, size, channels])

    def constant(name: str, *shape: int) -> int:
        return graph.add_tensor(name, np.float32, shape, data=random.standard_normal(shape).astype(np.float32) * 0.1)

    x = tensor("x")
    graph.set_inputs(x)
    for block in range(blocks):
        spread, mixed, total = (tensor(f"{name}{block}") for name in ("spread", "mixed", "total"))
        bias = constant(f"bias{block}", channels)
        graph.add_operator("DEPTHWISE_CONV_2D", [x, constant(f"d{block}", 1, 3, 3, channels), bias], [spread], depthwise_options)
        graph.add_operator("CONV_2D", [spread, constant(f"p{block}", channels, 1, 1, channels), bias], [mixed], pointwise_options)
        graph.add_operator("ADD", [x, mixed], [total], AddOptions())
        x = total
    graph.set_outputs(x)
    return builder.to_bytes()


def batches(sizes: Sequence[int], rounds: int) -> common.Section:
    """Milliseconds by batch size, and milliseconds per example relative to a batch of one."""
    content = small_net()
    rows = []
    data: dict[str, dict[int, float]] = {}
    kinds = [kind for kind in _KINDS if runners.installed(kind)]
    for size in sizes:
        invokes: dict[str, Callable[[], object]] = {}
        for kind in kinds:
            interpreter = runners.make(kind, content)
            [detail] = interpreter.get_input_details()
            interpreter.resize_tensor_input(detail["index"], [size, *detail["shape"][1:]])
            interpreter.allocate_tensors()
            runners.feed(interpreter)
            interpreter.invoke()
            invokes[kind] = interpreter.invoke
        for kind, values in common.take_turns(invokes, rounds).items():
            data.setdefault(kind, {})[size] = statistics.median(values) * 1e3
    for size in sizes:
        cells = [f"{data[kind][size]:.2f} ({data[kind][size] / size / data[kind][sizes[0]] * sizes[0]:.2f})" for kind in kinds]
        rows.append([str(size), *cells])
    lines = [
        f"Milliseconds of a batch (in brackets: an item's time against an item's in a batch of {sizes[0]}); four blocks of a "
        "depthwise and a pointwise convolution on 56 x 56 x 32.",
        "",
        *common.table(["batch#", *(f"{kind}#" for kind in kinds)], rows),
    ]
    return common.Section("Batch size", lines, {"ms": data})


def multiply_adds(content: bytes) -> int:
    """The number of multiply-adds of convolutions and fully connected layers in an inference."""
    interpreter = runners.make("oplet-numpy", content)
    interpreter.allocate_tensors()
    total = 0
    for subgraph in interpreter._subgraphs[:1]:
        for node in (subgraph.nodes[index] for index in subgraph.execution_plan):
            if node.op_name in ("CONV_2D", "FULLY_CONNECTED"):
                total += node.outputs[0].size * (node.inputs[1].size // max(node.inputs[1].shape[0], 1))
            elif node.op_name == "DEPTHWISE_CONV_2D":
                total += node.outputs[0].size * node.inputs[1].size // max(node.inputs[1].shape[-1], 1)
            elif node.op_name == "TRANSPOSE_CONV":
                total += node.inputs[2].size * (node.inputs[1].size // max(node.inputs[1].shape[-1], 1))
    return total


def _with_threads(kind: str, content: bytes, counts: Sequence[int]) -> dict[str, Callable[[], object]]:
    invokes: dict[str, Callable[[], object]] = {}
    for count in counts:
        try:
            interpreter = runners.make(kind, content, num_threads=count)
            interpreter.allocate_tensors()
            runners.feed(interpreter)
            interpreter.invoke()
        except (ValueError, RuntimeError):
            continue
        invokes[f"{kind} {count}"] = interpreter.invoke
    return invokes


def threads(
    found: Sequence[tuple[str, bytes]], counts: Sequence[int], rounds: int, tell: Callable[[str], None] = print
) -> common.Section:
    """Speedup of the large models with more threads, relative to the first count."""
    rows = []
    data: dict[str, Any] = {"models": {}}
    kinds = [kind for kind in _KINDS if runners.installed(kind)]
    gains: dict[tuple[str, int], list[float]] = {}
    for name, content in found:
        try:
            amount = multiply_adds(content)
        except (ValueError, RuntimeError):
            continue
        if amount < _LARGE:
            continue
        seconds: dict[str, list[float]] = {}
        for kind in kinds:  # not alternating: idle threads of one runner would spin on cores that another one uses
            seconds |= common.take_turns(_with_threads(kind, content, counts), rounds)
        cells = [name, f"{amount / 1e6:.0f}"]
        for kind in kinds:
            for count in counts[1:]:
                one, more = f"{kind} {counts[0]}", f"{kind} {count}"
                gain = ratio_of(seconds[one], seconds[more]) if one in seconds and more in seconds else None
                if gain is None:
                    cells.append("-")
                    continue
                gains.setdefault((kind, count), []).append(gain[0])
                data["models"].setdefault(name, {})[more] = gain
                cells.append(f"{gain[0]:.2f} ({gain[1]:.2f} to {gain[2]:.2f})")
        rows.append(cells)
        tell(f"| {' | '.join(cells)} |")
    data["means"] = {f"{kind} {count}": common.geometric_mean(values) for (kind, count), values in gains.items()}
    columns = ["model", "million multiply-adds#", *(f"{kind}, {count} threads#" for kind in kinds for count in counts[1:])]
    lines = [
        f"How many times as fast as on {counts[0]} thread, pair by pair, with the middle half; models above "
        f"{_LARGE // 10**6} million multiply-adds.",
        "",
        *common.table(columns, rows),
        "",
        "Geometric means: " + ", ".join(f"{name} threads {mean:.2f}" for name, mean in data["means"].items()),
    ]
    return common.Section("Threads", lines, data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least-bytes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--batches", type=int, nargs="+", default=(1, 2, 4, 8, 16))
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    arguments = parser.parse_args()
    found = list(common.models(arguments.folder, arguments.least_bytes))
    print(batches(arguments.batches, arguments.rounds).markdown)
    tell = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    print(threads(found, arguments.threads, arguments.rounds, tell).markdown)


if __name__ == "__main__":
    main()
