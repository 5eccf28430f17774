"""Kernels of composites against their decompositions.

    python benchmarks/composites.py [--rounds N]

For each composite the milliseconds of this thread for one invoke, with the kernel and with the decomposition, and in LiteRT if it is
installed: in turns of ten invokes, the best of each turn; then how many times the decomposition's time it is, the median of the turns. The
decomposition is run under a name that nobody serves. Set OPENBLAS_NUM_THREADS=1: threads of BLAS are not counted.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from oplet import Interpreter
from oplet.schema.options import BatchMatMulOptions, ReducerOptions, SoftmaxOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing import Graph, Op, Spec, graph_model

_TURN = 10


def _f32(*shape: int) -> Spec:
    return Spec("float32", list(shape))


def _whole(name: str, attributes: dict[str, Any], tensors: dict[str, Any], reads: str) -> Graph:
    data = np.frombuffer(bytes(flexbuffers.Dumps(attributes)), np.uint8)
    options = StableHLOCompositeOptions(name=name, decomposition_subgraph_index=1, composite_attributes=data)
    return Graph(tensors, reads, "y", [Op("STABLEHLO_COMPOSITE", reads, "y", options)])


def rms_norm(rows: int, size: int) -> bytes:
    """As litert-torch writes it: rows of values, a weight for each value."""
    x, mean = _f32(1, rows, size), _f32(1, rows)
    border = {"x": x, "w": _f32(size), "y": x}
    constants = {"axis": np.array([2], np.int32), "e": np.array(1e-6, np.float32), "shape": np.array([1, rows, 1], np.int32)}
    tensors: dict[str, Any] = {
        **border,
        **constants,
        "s": x,
        "m": mean,
        "a": mean,
        "c": _f32(1, rows, 1),
        "r": _f32(1, rows, 1),
        "n": x,
    }
    ops = [
        Op("MUL", "x x", "s"),
        Op("MEAN", "s axis", "m", ReducerOptions(keep_dims=False)),
        Op("ADD", "m e", "a"),
        Op("RESHAPE", "a shape", "c"),
        Op("RSQRT", "c", "r"),
        Op("MUL", "x r", "n"),
        Op("MUL", "n w", "y"),
    ]
    return graph_model(_whole("odml.rms_norm", {"epsilon": 1e-6}, border, "x w"), Graph(tensors, "x w", "y", ops))


def attention(queries: int, keys: int, heads: int, groups: int, size: int) -> bytes:
    """Attention with a mask, whose heads share keys in groups."""
    q, k, mask = _f32(1, queries, heads, size), _f32(1, keys, groups, size), _f32(1, 1, queries, keys)
    border = {"q": q, "k": k, "v": k, "m": mask, "y": q}
    shared = heads // groups
    turned, spread, flat = (1, groups, keys, size), (1, groups, shared, keys, size), (1, heads, keys, size)
    constants = {
        "p": np.array([0, 2, 1, 3], np.int32),
        "scale": np.array(size**-0.5, np.float32),
        "one": np.array([1, groups, 1, keys, size], np.int32),
        "many": np.array(spread, np.int32),
        "flat": np.array(flat, np.int32),
    }
    tensors: dict[str, Any] = {**border, **constants, "qt": _f32(1, heads, queries, size), "qs": _f32(1, heads, queries, size)}
    ops = [Op("TRANSPOSE", "q p", "qt"), Op("MUL", "qt scale", "qs")]
    for name in "kv":
        tensors |= {f"{name}1": _f32(*turned), f"{name}2": _f32(1, groups, 1, keys, size), f"{name}3": _f32(*spread)}
        tensors[f"{name}4"] = _f32(*flat)
        ops += [Op("TRANSPOSE", f"{name} p", f"{name}1"), Op("RESHAPE", f"{name}1 one", f"{name}2")]
        ops += [Op("BROADCAST_TO", f"{name}2 many", f"{name}3"), Op("RESHAPE", f"{name}3 flat", f"{name}4")]
    scores = _f32(1, heads, queries, keys)
    tensors |= {"l": scores, "lm": scores, "s": scores, "o": _f32(1, heads, queries, size)}
    ops += [
        Op("BATCH_MATMUL", "qs k4", "l", BatchMatMulOptions(adj_y=True)),
        Op("ADD", "l m", "lm"),
        Op("SOFTMAX", "lm", "s", SoftmaxOptions(beta=1.0)),
        Op("BATCH_MATMUL", "s v4", "o"),
        Op("TRANSPOSE", "o p", "y"),
    ]
    whole = _whole("odml.scaled_dot_product_attention", {"scale": size**-0.5}, border, "q k v m")
    return graph_model(whole, Graph(tensors, "q k v m", "y", ops))


MODELS = {
    "attention, 1 query, 1,024 keys, 8 heads on 2": attention(1, 1024, 8, 2, 64),
    "attention, 1 query, 1,024 keys, 8 heads": attention(1, 1024, 8, 8, 64),
    "attention, 128 queries, 1,024 keys, 8 heads on 2": attention(128, 1024, 8, 2, 64),
    "rms_norm, 1 x 2,048": rms_norm(1, 2048),
    "rms_norm, 128 x 2,048": rms_norm(128, 2048),
}


def _engines(model: bytes) -> dict[str, Any]:
    unserved = model.replace(b"odml.", b"none.")
    found: dict[str, Any] = {}
    for name, plugins in (("installed", None), ("numpy", ["oplet-builtin-ops"])):
        found[f"decomposition, {name}"] = Interpreter(model_content=unserved, plugins=plugins)
        found[f"kernel, {name}"] = Interpreter(model_content=model, plugins=plugins)
    try:
        from ai_edge_litert.interpreter import Interpreter as LiteRT
    except ImportError:
        return found
    return {**found, "LiteRT": LiteRT(model_content=model)}


def measure(model: bytes, rounds: int) -> dict[str, np.ndarray]:
    """Seconds of each turn, by engine."""
    engines = _engines(model)
    for engine in engines.values():
        random = np.random.default_rng(0)
        engine.allocate_tensors()
        for detail in engine.get_input_details():
            engine.set_tensor(detail["index"], random.standard_normal(detail["shape"]).astype(np.float32))
        engine.invoke()
    times: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, engine in engines.items():
            turn = []
            for _ in range(_TURN):
                start = time.thread_time()
                engine.invoke()
                turn.append(time.thread_time() - start)
            times[name].append(min(turn))
    return {name: np.array(seconds) for name, seconds in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    for name, model in MODELS.items():
        print(name)
        times = measure(model, rounds)
        for engine, seconds in times.items():
            ratio = np.median(times["decomposition, installed"] / seconds)
            print(f"  {engine:26} {seconds.min() * 1e3:8.3f} ms  {ratio:5.2f} times as fast")


if __name__ == "__main__":
    main()
