"""Run one small model that takes long, or much memory, in a process with little of both; see `test_deadlines.py`.

python -m tests.hostile.limited_child CASE PLUGIN...
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from oplet import Interpreter, Limits, ModelBuilder
from oplet.errors import OpletError
from oplet.schema import options as o
from oplet.schema.enums import LSHProjectionType, TensorType
from oplet.schema.stablehlo_options import RngAlgorithm, StablehloDotGeneralOptions, StablehloRngBitGeneratorOptions
from oplet_testing import one_op_model
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

__all__ = ["CASES", "LIMITS"]

#: The limits that docs/reliability.md shows.
LIMITS = Limits(
    max_arena_bytes=64 << 20, max_tensor_bytes=64 << 20, max_nodes=2_000, max_while_iterations=10_000, max_seconds=2.0
)
#: Memory, in bytes, beside what there is after the imports; processor time for one call, in seconds.
_SPACE, _SECONDS = 1 << 30, 2 * (LIMITS.max_seconds or 0)

Made = tuple[bytes, dict[int, object]]
CASES: dict[str, Callable[[], Made]] = {}


def case(make: Callable[[], Made]) -> Callable[[], Made]:
    CASES[make.__name__] = make
    return make


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def floats(*shape: int) -> Spec:
    return Spec("float32", list(shape))


@case
def multinomial_of_many_rows() -> Made:
    many = Spec("int64", [3_000_000, 1])
    tensors = {"x": floats(3_000_000, 2), "n": np.array(8, np.int32), "y": many}
    return graph_model(Graph(tensors, "x", "y", [Op("MULTINOMIAL", "x n", "y", o.RandomOptions(seed=1))])), {}


@case
def depthwise_of_many_taps() -> Made:
    """Weights that the caller gives: a file would hold them only if a FILL makes them."""
    options = o.DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    return one_op_model(
        "DEPTHWISE_CONV_2D", [floats(1, 500, 500, 2), floats(1, 255, 255, 2)], [floats(1, 500, 500, 2)], options
    ), {}


@case
def add_n_of_many_operands() -> Made:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", "float32", [3_000_000]), graph.add_tensor("y", "float32", [3_000_000])
    graph.set_inputs(x)
    graph.add_operator("ADD_N", [x] * 10_000, [y])
    graph.set_outputs(y)
    return builder.to_bytes(), {}


@case
def pack_of_very_many_operands() -> Made:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    count = 1_000_000
    x, y = graph.add_tensor("x", "float32", [1]), graph.add_tensor("y", "float32", [count, 1])
    graph.set_inputs(x)
    graph.add_operator("PACK", [x] * count, [y], o.PackOptions(values_count=count))
    graph.set_outputs(y)
    return builder.to_bytes(), {}


@case
def product_of_integers() -> Made:
    """Which numpy multiplies without BLAS."""
    contracting = {"lhs_contracting_dimensions": np.array([1]), "rhs_contracting_dimensions": np.array([0])}
    options = StablehloDotGeneralOptions(**contracting)
    return one_op_model("STABLEHLO_DOT_GENERAL", [Spec("int64", [1100, 1100])] * 2, [Spec("int64", [1100, 1100])], options), {}


@case
def unique_of_many_values() -> Made:
    many = Spec("int32", [8_000_000])
    return one_op_model("UNIQUE", [floats(8_000_000)], [floats(-1), many], o.UniqueOptions(idx_out_type=TensorType.INT32)), {}


@case
def l2_normalization_of_many_bytes() -> Made:
    options = {"zero_point": 0}
    source, output = Spec("int8", [10_000_000, 2], scale=0.1, **options), Spec("int8", [10_000_000, 2], scale=1 / 128, **options)
    return one_op_model("L2_NORMALIZATION", [source], [output], o.L2NormOptions()), {}


@case
def hash_of_many_items() -> Made:
    options = o.LSHProjectionOptions(type=LSHProjectionType.DENSE)
    return one_op_model("LSH_PROJECTION", [floats(1, 1), Spec("int32", [500_000])], [Spec("int32", [1])], options), {}


@case
def hash_of_a_long_item() -> Made:
    options = o.LSHProjectionOptions(type=LSHProjectionType.DENSE)
    return one_op_model("LSH_PROJECTION", [floats(1, 1), Spec("int32", [1, 10_000_000])], [Spec("int32", [1])], options), {}


@case
def sparse_sums_of_many_buckets() -> Made:
    count = 1_500_000
    specs = [Spec("int32", [count]), Spec("int32", [count, 2]), Spec("int32", [2]), floats(count), floats(100, 2)]
    buckets = np.random.default_rng(0).integers(0, 1000, (count, 2)).astype(np.int32)
    model = one_op_model("EMBEDDING_LOOKUP_SPARSE", specs, [floats(-1, 2)], o.EmbeddingLookupSparseOptions())
    return model, {1: buckets, 2: ints(1000, 100)}


@case
def reversals_of_many_sequences() -> Made:
    count = 6_000_000
    tensors = {"x": Spec("uint8", [count, 2]), "n": Spec("int32", [count]), "y": Spec("uint8", [count, 2])}
    options = o.ReverseSequenceOptions(seq_dim=1, batch_dim=0)
    ops = [Op("FILL", "shape two", "n"), Op("REVERSE_SEQUENCE", "x n", "y", options)]
    return graph_model(Graph({**tensors, "shape": ints(count), "two": np.array(2, np.int32)}, "x", "y", ops)), {}


@case
def random_bits() -> Made:
    options = StablehloRngBitGeneratorOptions(algorithm=RngAlgorithm.PHILOX)
    specs = [Spec("uint64", [2])], [Spec("uint64", [2]), Spec("uint64", [7_000_000])]
    return one_op_model("STABLEHLO_RNG_BIT_GENERATOR", *specs, options), {}


@case
def n_grams_of_a_long_sentence() -> Made:
    options = o.SkipGramOptions(ngram_size=20_000, max_skip_size=1, include_all_ngrams=True)
    sentence = np.array([b"a " * 20_000], object)
    return one_op_model("SKIP_GRAM", [Spec(TensorType.STRING, [1])], [Spec(TensorType.STRING, [-1])], options), {0: sentence}


@case
def n_grams_of_many_nodes() -> Made:
    """Each makes less than is allowed, and keeps it."""
    tensors: dict[str, Spec] = {"x": Spec(TensorType.STRING, [1])}
    ops = []
    for number in range(60):
        tensors[f"y{number}"] = Spec(TensorType.STRING, [-1])
        ops.append(Op("SKIP_GRAM", "x", f"y{number}", o.SkipGramOptions(ngram_size=500, include_all_ngrams=True)))
    return graph_model(Graph(tensors, "x", " ".join(list(tensors)[1:]), ops)), {0: np.array([b"words " * 1500], object)}


def _run(name: str, plugins: list[str]) -> str:
    """How far it came: "ran", or the class of the error that refused it."""
    data, feed = CASES[name]()
    space = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (space + _SPACE,) * 2)
    interpreter = Interpreter(model_content=data, limits=LIMITS, plugins=plugins)
    try:
        _timed(interpreter.allocate_tensors)
        for number, details in enumerate(interpreter.get_input_details()):
            if number in feed:
                interpreter.set_tensor(details["index"], feed[number])
        _timed(interpreter.invoke)
    except OpletError as error:
        return type(error).__name__
    return "ran"


def _timed(call: Callable[[], object]) -> None:
    """End the process if the call takes more processor time than is allowed: on a busy machine that is less than the clock's."""
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    call()
    signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], sys.argv[2:])))
