"""Results of a benchmark in the form of LiteRT's command `litert-benchmark`, and its options as those of `oplet benchmark`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from oplet_tools.benchmarking.benchmark import Benchmark

__all__ = ["is_fully_delegated", "litert_block", "litert_json", "own_options"]

#: What `litert-benchmark` takes for granted, in options of `oplet benchmark`.
_DEFAULTS = {"--num-runs": "50", "--warmup-runs": "5", "--min-secs": "0", "--warmup-min-secs": "0"}
#: Its options that take a value, each with oplet's; "" for those that have no effect here, and that is told.
_WITH_VALUE = {
    "--model": "MODEL",
    "--signature": "--signature",
    "--num_runs": "--num-runs",
    "--warmup_runs": "--warmup-runs",
    "--num_threads": "--num-threads",
    "--result_json": "--result-json",
    "--dispatch_library_path": "",
    "--compiler_plugin_path": "",
    "--runtime_path": "",
}
#: Its options that take none.
_FLAGS = {
    "--use_cpu": None,
    "--no_cpu": "",
    "--use_gpu": "",
    "--use_npu": "",
    "--require_full_delegation": "--require-full-delegation",
    "--verbose": None,
}


def own_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Translate options of LiteRT's `litert-benchmark` (--name VALUE or --name=VALUE) to those of `oplet benchmark`; others stay.

    Args:
        arguments: the arguments of `oplet benchmark`, --litert-output among them.

    Returns:
        The translated arguments, with `litert-benchmark`'s defaults for options that are missing; and the options that have no effect.
    """
    left = list(arguments)
    own: list[str] = []
    without_effect = []
    while left:
        argument = left.pop(0)
        name, equals, value = argument.partition("=")
        if name in _WITH_VALUE:
            if not equals:
                value = left.pop(0) if left else ""
            theirs = _WITH_VALUE[name]
            own += [value] if theirs == "MODEL" else [f"{theirs}={value}"] if theirs else []
            without_effect += [] if theirs else [name]
        elif argument in _FLAGS:
            flag = _FLAGS[argument]
            own += [flag] if flag else []
            without_effect += [argument] if flag == "" else []
        else:
            own.append(argument)
    given = {argument.partition("=")[0] for argument in own}
    own += [f"{name}={value}" for name, value in _DEFAULTS.items() if name not in given]
    own += [] if given & {"--profile", "--no-profile"} else ["--no-profile"]
    return own, without_effect


def is_fully_delegated(result: Benchmark) -> bool:
    """Return whether one delegate runs all nodes, which is what LiteRT calls fully accelerated."""
    return any(claimed == nodes > 0 for _, claimed, nodes in result.delegated)


def litert_block(results: Mapping[str, Any]) -> list[str]:
    """Return the lines of text that `litert-benchmark` prints for results, given as `litert_json` returns them."""
    latency, throughput = results["latency"], results["throughput_mb_s"]
    line = "=" * 40
    rows = [
        ("Model initialization:", f"{latency['init_ms']:.2f} ms"),
        ("Warmup (first):", f"{latency['warmup_first_ms']:.2f} ms"),
        ("Warmup (avg):", f"{latency['warmup_avg_ms']:.2f} ms ({latency['num_warmup_runs']} runs)"),
        ("Inference (avg):", f"{latency['avg_ms']:.2f} ms ({latency['num_runs']} runs)"),
        *((f"Inference ({name}):", f"{latency[f'{name}_ms']:.2f} ms") for name in ("min", "max", "median", "std", "p5", "p95")),
        *([("Throughput:", f"{throughput:.2f} MB/s")] if throughput > 0 else []),
        ("Fully accelerated:", str(results["fully_accelerated"])),
    ]
    return ["", line, " BENCHMARK RESULTS", line, *(f"{name:<23}{value}" for name, value in rows), line]


def litert_json(result: Benchmark) -> dict[str, Any]:
    """Return a benchmark's results as the JSON object that `litert-benchmark --result_json` writes."""
    latency = {name: round(value, 2) if isinstance(value, float) else value for name, value in _latency(result).items()}
    return {
        "model": result.model,
        "model_size_mb": round(os.path.getsize(result.model) / 2**20, 2),
        "accelerators": [*dict.fromkeys(name for name, claimed, _ in result.delegated if claimed), "CPU"],
        "signature": result.signature,
        "fully_accelerated": is_fully_delegated(result),
        "num_threads": result.num_threads,
        "latency": latency,
        "throughput_mb_s": round(_throughput(result), 2),
    }


def _latency(result: Benchmark) -> dict[str, float | int]:
    runs, warmup = result.runs, result.warmup
    spread = runs.std * math.sqrt(runs.count / (runs.count - 1)) if runs.count > 1 else 0.0  # theirs is that of a sample
    seconds = {
        "init_ms": result.load + result.allocate,
        "warmup_first_ms": warmup.first if warmup else 0.0,
        "warmup_avg_ms": warmup.mean if warmup else 0.0,
        "num_warmup_runs": 0,
        "avg_ms": runs.mean,
        "min_ms": runs.min,
        "max_ms": runs.max,
        "median_ms": runs.p50,
        "std_ms": spread,
        "p5_ms": runs.p5,
        "p95_ms": runs.p95,
    }
    told: dict[str, float | int] = {name: float(value * 1e3) for name, value in seconds.items()}
    return told | {"num_warmup_runs": warmup.count if warmup else 0, "num_runs": runs.count}


def _throughput(result: Benchmark) -> float:
    """Return the megabytes of inputs that a second of runs takes; those of text have no size."""
    sizes = [math.prod(shape) * np.dtype(type).itemsize for type, shape in result.inputs.values() if type != "string"]
    return sum(sizes) / 2**20 / result.runs.mean if result.runs.mean > 0 else 0.0
