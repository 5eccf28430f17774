"""Stand-in for `ai_edge_litert.tools.benchmark_litert_model`, the script `litert-benchmark`: the same measurements of oplet's CompiledModel."""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from oplet import write_atomically
from oplet_tools.benchmarking.litert_output import litert_block

__all__ = [
    "build_hardware_accelerators",
    "create_environment",
    "create_model_options",
    "fill_random_input",
    "get_numpy_dtype",
    "main",
    "parse_args",
    "percentile",
    "run_benchmark",
]

logger = logging.getLogger("benchmark_litert_model")

#: Types that the script fills inputs with, by LiteRT's names; those of the second row are of the package ml_dtypes.
_OF_NUMPY = ("float32", "float16", "int32", "int8", "uint8", "int64", "bool")
_OF_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def parse_args() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description="Measure how fast a model runs on oplet's CompiledModel.")
    parser.add_argument("--model", required=True, help="the .tflite file")
    parser.add_argument("--signature", default="", help="the key of the signature to run, the first one unless given")
    parser.add_argument("--use_cpu", action="store_true", default=True, help="run on the CPU, which is the case anyway")
    for name, text in (
        ("no_cpu", "leave nothing to the CPU"),
        ("use_gpu", "run on a GPU"),
        ("use_npu", "run on an NPU"),
        ("require_full_delegation", "fail unless delegates run all nodes"),
        ("verbose", "tell more"),
    ):
        parser.add_argument(f"--{name}", action="store_true", help=text)
    for name in ("dispatch_library_path", "compiler_plugin_path", "runtime_path"):
        parser.add_argument(f"--{name}", default="", help="accepted for compatibility")
    for name, default, text in (
        ("num_runs", 50, "measured runs"),
        ("warmup_runs", 5, "runs before"),
        ("num_threads", 1, "threads of kernels"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{text}, {default} unless given")
    parser.add_argument("--result_json", default="", help="the file to write the results to")
    return parser.parse_args()


def build_hardware_accelerators(args: Any, hardware_accelerator_cls: Any) -> Any:
    """Return the hardware accelerators that the arguments select; the CPU if they select none."""
    wanted = [hardware_accelerator_cls.NPU] if args.use_npu else []
    wanted += [hardware_accelerator_cls.GPU] if args.use_gpu else []
    if not wanted or not (args.no_cpu or args.require_full_delegation):
        wanted.append(hardware_accelerator_cls.CPU)
    return hardware_accelerator_cls(sum(int(each) for each in wanted))


def create_environment(args: Any, environment: Any, environment_options: Any) -> Any:
    """Return an environment with the library folders that the arguments name; for a file, with its folder."""
    given = {"runtime_path": args.runtime_path} if args.runtime_path else {}
    for name in ("compiler_plugin_path", "dispatch_library_path"):
        if path := getattr(args, name):
            given[name] = os.path.dirname(path) if os.path.isfile(path) else path
    return environment.create(options=environment_options(**given))


def create_model_options(args: Any, options: Any, cpu_options: Any, hardware_accel: Any) -> Any:
    """Return the options of the model."""
    return options(hardware_accelerators=hardware_accel, cpu_options=cpu_options(num_threads=args.num_threads))


def get_numpy_dtype(dtype_str: str) -> Any:
    """Return the numpy type of a name of LiteRT's; float32 for names that it has none for."""
    if dtype_str in _OF_ML_DTYPES:
        import ml_dtypes

        return getattr(ml_dtypes, dtype_str)
    return np.dtype(dtype_str if dtype_str in _OF_NUMPY else "float32").type


def fill_random_input(tensor_buffer: Any, details: dict[str, Any]) -> None:
    """Write random values of the buffer's type: floats from -1 to 1, integers from -128 to 127 as far as the type has them."""
    dtype = get_numpy_dtype(details.get("dtype", "float32"))
    shape = details.get("shape", [1])
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        values = np.random.randint(max(info.min, -128), min(info.max, 127) + 1, shape, dtype)
    elif dtype is np.bool_:
        values = np.zeros(shape, dtype)
    else:
        values = np.random.uniform(-1, 1, shape).astype(dtype)
    tensor_buffer.write(values)


def percentile(sorted_data: Sequence[float], p: float) -> float:
    """Return the `p`-th percentile of sorted numbers, linearly interpolated; 0 if there are no numbers."""
    return float(np.percentile(sorted_data, p)) if sorted_data else 0.0


def run_benchmark(args: Any) -> dict[str, Any]:
    """Run the benchmark, print the results as LiteRT does, write them to `args.result_json`, and return them. Exits on errors."""
    api = import_module("oplet.compiled_model")  # which a package of its own brings
    if not os.path.isfile(args.model):
        _fail(f"Model file not found: {args.model}")
    hardware = build_hardware_accelerators(args, api.HardwareAccelerator)
    environment = create_environment(args, api.Environment, api.EnvironmentOptions)
    options = create_model_options(args, api.Options, api.CpuOptions, hardware)
    begin = time.perf_counter()
    model = api.CompiledModel.from_file(args.model, environment=environment, options=options)
    init = _milliseconds(begin)
    key = args.signature or next(iter(model.get_signature_list()))
    if model.get_signature_index(key) < 0:
        _fail(f'Signature "{key}" not found.')
    fully = model.is_fully_accelerated()
    if args.require_full_delegation and not fully:
        _fail("Model is not fully accelerated but --require_full_delegation was set.")
    details = model.get_input_tensor_details(key)
    inputs = {name: model.create_input_buffer_by_name(key, name) for name in details}
    outputs = {name: model.create_output_buffer_by_name(key, name) for name in model.get_output_tensor_details(key)}
    for name, buffer in inputs.items():
        fill_random_input(buffer, details[name])
    warmup, runs = (_times(lambda: model.run_by_name(key, inputs, outputs), count) for count in (args.warmup_runs, args.num_runs))
    size = sum(math.prod(each["shape"]) * np.dtype(get_numpy_dtype(each["dtype"])).itemsize for each in details.values())
    mean, ordered = statistics.fmean(runs) if runs else 0.0, sorted(runs)
    latency = {
        "init_ms": init,
        "warmup_first_ms": warmup[0] if warmup else 0.0,
        "warmup_avg_ms": statistics.fmean(warmup) if warmup else 0.0,
        "num_warmup_runs": len(warmup),
        "avg_ms": mean,
        "min_ms": min(runs, default=0.0),
        "max_ms": max(runs, default=0.0),
        "median_ms": percentile(ordered, 50),
        "std_ms": statistics.stdev(runs) if len(runs) > 1 else 0.0,
        "p5_ms": percentile(ordered, 5),
        "p95_ms": percentile(ordered, 95),
        "num_runs": len(runs),
    }
    results = {
        "model": args.model,
        "model_size_mb": round(os.path.getsize(args.model) / 2**20, 2),
        "accelerators": [name for name in ("NPU", "GPU", "CPU") if hardware & api.HardwareAccelerator[name]],
        "signature": key,
        "fully_accelerated": fully,
        "num_threads": args.num_threads,
        "latency": {name: round(value, 2) if isinstance(value, float) else value for name, value in latency.items()},
        "throughput_mb_s": round(size / 2**20 / mean * 1000, 2) if mean > 0 else 0.0,
    }
    sys.stdout.write("\n".join([*litert_block(results), ""]))
    if args.result_json:
        try:
            write_atomically(args.result_json, json.dumps(results, indent=2))
        except OSError as error:
            logger.error("Failed to write results to %s: %s", args.result_json, error)
    return results


def _times(run: Callable[[], None], count: int) -> list[float]:
    """Return the milliseconds of each of so many runs."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        run()
        found.append(_milliseconds(begin))
    return found


def _milliseconds(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000


def _fail(message: str) -> None:
    """End the process with an error, as the script does."""
    logger.error(message)
    sys.exit(1)


def main() -> None:
    """Run the script."""
    args = parse_args()
    logging.basicConfig(level=logging.DEBUG if args.verbose else logging.INFO)
    run_benchmark(args)


if __name__ == "__main__":
    main()
