"""OpenVINO's core (one per process), and compilation of graphs for a device."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import openvino
from openvino import opset13 as ov

#: Multiply-adds of a convolution or product, on the average of a graph, from which on several threads are faster than one: a
#: core does 10 to 50 in a nanosecond, and to hand out work and wait for it takes two to four microseconds.
_WORTH_SHARING = 200_000


@cache
def engine() -> openvino.Core:
    """Return OpenVINO's `Core`, created once per process, as it loads the device plugins."""
    return openvino.Core()


def devices() -> list[str]:
    """Return this machine's device types (CPU, GPU, NPU), without device numbers."""
    return list(dict.fromkeys(name.split(".")[0] for name in engine().available_devices))


def settings(device: str, threads: int, cache_dir: str) -> dict[str, Any]:
    """Return the settings for OpenVINO's compiler: low latency, float32 precision on a CPU, number of threads and cache folder."""
    told: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "EXECUTION_MODE_HINT": "ACCURACY"}
    if device == "CPU":
        # Pinned threads of several processes would meet on the same core.
        told |= _without_snippets() | {
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "ENABLE_CPU_PINNING": False,
        }
    if cache_dir:
        told["CACHE_DIR"] = cache_dir
    return told


@cache
def _without_snippets() -> dict[str, Any]:
    """Return settings that stop OpenVINO from fusing matrix product chains with small ops (snippets), if this version has them.

    Doing so on one thread, 2026.4 crashes on an unrolled RNN while it compiles, and convolutional models gain nothing.
    """
    told = {"SNIPPETS_MODE": "DISABLE"}
    x = ov.parameter([1], openvino.Type.f32)
    try:
        engine().compile_model(openvino.Model([ov.result(ov.relu(x))], [x], "probe"), "CPU", told)
    except RuntimeError:
        return {}
    return told


def compiled(model: openvino.Model, device: str, told: dict[str, Any]) -> openvino.CompiledModel:
    """Compile a model for a device with the settings `told`; for a single thread if its nodes are too small to be divided."""
    if told.get("INFERENCE_NUM_THREADS", 1) > 1:
        found = [count for count in map(_multiplications, model.get_ops()) if count]
        if found and sum(found) < _WORTH_SHARING * len(found):
            told = told | {"INFERENCE_NUM_THREADS": 1}
    return engine().compile_model(model, device, told)


def memory(model: openvino.Model) -> int:
    """Estimate the memory of a compiled model in bytes: live intermediates, and repacked constants.

    OpenVINO allocates it when it compiles, without regard to the interpreter's limits.
    """
    nodes = model.get_ordered_ops()
    last = {source: place for place, node in enumerate(nodes) for source in _sources(node)}
    now = most = fixed = 0
    for place, node in enumerate(nodes):
        made = sum(_nbytes(output) for output in node.outputs())
        if node.get_type_name() == "Constant":
            fixed += made
            continue
        now += made
        most = max(most, now)
        for source in _sources(node):
            if last[source] == place and source.get_type_name() not in ("Constant", "Parameter"):
                now -= sum(_nbytes(output) for output in source.outputs())
    return most + fixed


def _sources(node: openvino.Node) -> set[openvino.Node]:
    return {value.get_node() for value in node.input_values()}


def _nbytes(output: openvino.Output) -> int:
    shape = output.get_partial_shape()
    return int(math.prod(shape.to_shape()) * output.get_element_type().size) if shape.is_static else 0


def work(model: openvino.Model) -> int:
    """Estimate how many values a model multiplies or moves."""
    return sum(_multiplications(node) or _values(node) for node in model.get_ordered_ops())


def _values(node: openvino.Node) -> int:
    found = sum(
        math.prod(output.get_partial_shape().to_shape()) for output in node.outputs() if output.get_partial_shape().is_static
    )
    if node.get_type_name().endswith("Pool"):
        return int(found * math.prod(node.get_attributes()["kernel"]))
    return 0 if node.get_type_name() == "Constant" else found


def _multiplications(node: openvino.Node) -> int:
    """Count the multiplications of a convolution or matrix product; 0 for other nodes."""
    kind = node.get_type_name()
    shape: list[int] = list(node.get_output_shape(0))
    if kind == "MatMul":
        data: list[int] = list(node.get_input_shape(0))
        depth = data[-2] if node.get_attributes()["transpose_a"] and len(data) > 1 else data[-1]
        return depth * math.prod(shape)
    if kind in ("Convolution", "GroupConvolution", "ConvolutionBackpropData"):
        data, weights = (list(node.get_input_shape(i)) for i in (0, 1))
        places = data if kind == "ConvolutionBackpropData" else shape
        return math.prod((places[0], *places[2:], *weights))
    return 0
