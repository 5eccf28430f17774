"""Large and deep files: reading and verifying them takes time linear in their size."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

import numpy as np
import pytest

from oplet import Interpreter, Model
from oplet.model.verify.verifier import verify
from oplet.schema import tables
from oplet.schema.options import CallOnceOptions
from oplet_testing import Graph, Op, Spec, chain_graph, graph_model

from .harness import base, edited, i32, main, refusal, rows, sharing_tensors


def chain(nodes: int) -> bytes:
    return graph_model(chain_graph(["RELU"] * nodes, Spec("float32", [1])))


def tensors(count: int) -> bytes:
    def change(root: tables.Model) -> None:
        more = [tables.Tensor(name=f"t{number}", shape=i32(number), type=0) for number in range(count)]
        main(root).tensors.extend(more)

    return edited(base(), change)


def codes(count: int) -> bytes:
    def change(root: tables.Model) -> None:
        root.operator_codes = (root.operator_codes or []) + [
            tables.OperatorCode(builtin_code=19, version=1) for _ in range(count)
        ]

    return edited(base(), change)


def subgraphs(count: int) -> bytes:
    """Each calls the next."""
    graphs = [Graph({}, ops=[Op("CALL_ONCE", options=CallOnceOptions(init_subgraph_index=i + 1))]) for i in range(count)]
    return graph_model(*graphs, Graph({}))


def one_wide_node(count: int) -> bytes:
    """A custom op that reads and writes so many tensors."""

    def change(root: tables.Model) -> None:
        graph = main(root)
        graph.tensors.extend(tables.Tensor(name="", shape=i32(1), type=0) for _ in range(count))
        graph.operators[0].inputs = np.full(count, 0, np.int32)
        graph.operators[0].outputs = np.arange(2, count + 2, dtype=np.int32)

    return edited(base(), change)


def scales(count: int) -> bytes:
    """Tensors of so many channels each, every fourth with its own scales."""

    def change(root: tables.Model) -> None:
        table = tables.QuantizationParameters(scale=np.ones(count, np.float32), zero_point=np.zeros(count, np.int64))
        main(root).tensors.extend(tables.Tensor(name="", shape=i32(count), type=9, quantization=table) for _ in range(50))

    return edited(base(), change)


MAKERS = [(chain, 1000), (tensors, 4000), (codes, 8000), (subgraphs, 500), (one_wide_node, 4000), (scales, 5000)]


def seconds(data: bytes) -> float:
    """What reading and verifying takes of the processor."""
    start = time.process_time()
    verify(Model.from_bytes(data))
    return time.process_time() - start


@rows(60)
@pytest.mark.parametrize(("make", "count"), MAKERS, ids=[make.__name__ for make, _ in MAKERS])
def test_four_times_the_size_takes_about_four_times_as_long(make: Callable[[int], bytes], count: int) -> None:
    small, large = make(count), make(4 * count)
    times: list[tuple[float, float]] = []
    for _ in range(10):  # in turns, and again where a busy machine was in the way of the shortest times
        times += [(seconds(small), seconds(large))]
        of_small, of_large = map(min, zip(*times))
        if len(times) >= 3 and of_large < 8 * of_small + 0.05:  # what grows with the square takes sixteen times as long
            return
    pytest.fail(f"{of_large:.3f} s, not about four times {of_small:.3f} s")


@rows(60)
def test_a_hundred_calls_in_a_row_are_refused_for_their_depth() -> None:
    interpreter = Interpreter(model_content=subgraphs(100))
    refusal(interpreter.allocate_tensors, "called at a depth of .*max_call_depth|circle")


@rows(60)
def test_a_long_cycle_is_told_in_short() -> None:
    def change(root: tables.Model) -> None:
        main(root).operators[0].inputs = main(root).outputs

    refusal(
        lambda: Interpreter(model_content=edited(chain(1000), change)),
        r"cycle, node 0 \(RELU\) reads from .* more reads from .*node 0",
    )


@rows(60)
def test_vectors_that_share_their_bytes_too_often_are_refused() -> None:
    shape = np.ones(250_000, np.int32)
    data = sharing_tensors(20_000, 0, struct.pack("<I", shape.size) + shape.tobytes())
    refusal(lambda: Interpreter(model_content=data), "Tensor.shape shares its bytes with too many others")


@rows(60)
def test_names_that_overlap_one_another_are_refused() -> None:
    length = 1 << 16  # each word of the value is the length of a name, and each name ends at the low byte of another
    data = sharing_tensors(20_000, 3, struct.pack("<I", length) * (20_000 + length // 4 + 1), step=4)
    refusal(lambda: Interpreter(model_content=data), "a string shares its bytes with too many others")


@pytest.mark.sweep
@pytest.mark.parametrize(("make", "count"), [(chain, 100_000), (tensors, 1_000_000), (codes, 65_536)])
def test_the_largest_of_the_list_are_read_and_verified_in_seconds(make: Callable[[int], bytes], count: int) -> None:
    assert seconds(make(count)) < 15
