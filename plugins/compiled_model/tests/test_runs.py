"""Runs on buffers: in place, without copies or allocation, whichever buffers are given and however often they change."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest
from plugins.compiled_model.tests.models import F32, aligned, doubling, model_of

from oplet import ModelBuilder, TensorType
from oplet.schema.options import SVDFOptions
from oplet.toolkit import SubgraphRunner
from oplet_compiled_model import CompiledModel, CompiledModelError, TensorBuffer
from oplet_testing import Spec, one_op_model

SIZE = 100_000


def buffers_of(model: CompiledModel) -> tuple[list[TensorBuffer], list[TensorBuffer]]:
    return model.create_input_buffers(0), model.create_output_buffers(0)


def test_a_second_run_on_the_same_buffers_allocates_no_memory_for_tensors() -> None:
    model = doubling(SIZE, plugins=["oplet-builtin-ops"])  # compiled kernels take memory when they are ready
    inputs, outputs = buffers_of(model)
    inputs[0].write(np.ones(SIZE, F32))
    model.run_by_index(0, inputs, outputs)
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        model.run_by_index(0, inputs, outputs)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < SIZE // 20, "a run allocates as much as a part of a tensor"
    assert after - before < 2000
    assert outputs[0].read(1, F32)[0] == 4


def test_tensors_lie_in_the_buffers_themselves() -> None:
    model = doubling(SIZE)
    x, y = aligned((SIZE,), F32), aligned((SIZE,), F32)
    inputs, outputs = [TensorBuffer.create_from_host_memory(x)], [TensorBuffer.create_from_host_memory(y)]
    for start in (1, 2, 3):
        x[...] = start
        model.run_by_index(0, inputs, outputs)
        assert (y == 4 * start).all()
    runner = SubgraphRunner(model.interpreter)
    for index, array in ((0, x), (2, y)):
        assert runner.tensor(index).data.__array_interface__["data"] == array.__array_interface__["data"]


def test_whichever_buffers_come_in_turn_the_answers_are_theirs_and_those_of_before_stay() -> None:
    model = doubling(5)
    sets = [buffers_of(model) for _ in range(3)]
    generator = np.random.default_rng(0)
    expected: dict[int, float] = {}
    for step, which in enumerate(generator.integers(0, 3, 60).tolist() + [1] * 20 + [2, 1, 0, 2]):
        inputs, outputs = sets[which]
        inputs[0].write(np.full(5, step, F32))
        model.run_by_index(0, inputs, outputs)
        expected[which] = 4.0 * step
        for other, value in expected.items():
            assert sets[other][1][0].read(5, F32).tolist() == [value] * 5
            assert sets[other][0][0].read(5, F32).tolist() == [value / 4] * 5


def test_buffers_that_come_again_and_again_after_many_others_are_bound_again() -> None:
    model = doubling(5)
    for _ in range(12):
        model.run_by_index(0, *buffers_of(model))
    x = aligned((5,), F32)
    inputs, outputs = [TensorBuffer.create_from_host_memory(x)], model.create_output_buffers(0)
    for _ in range(8):
        model.run_by_index(0, inputs, outputs)
    data = SubgraphRunner(model.interpreter).tensor(0).data
    assert data.__array_interface__["data"] == x.__array_interface__["data"]


def test_states_go_round_in_two_sets_of_buffers() -> None:
    model = doubling(3, nodes=1)
    first, second = model.create_input_buffers(0)[0], model.create_output_buffers(0)[0]
    first.write(np.ones(3, F32))
    for step in range(1, 20):
        model.run_by_index(0, [first], [second])
        first, second = second, first
        assert first.read(3, F32).tolist() == [2.0**step] * 3


def test_one_buffer_may_be_input_and_output_at_once() -> None:
    model = doubling(3, nodes=3)
    [buffer] = model.create_input_buffers(0)
    buffer.write(np.ones(3, F32))
    for step in (1, 2, 3):
        model.run_by_index(0, [buffer], [buffer])
        assert buffer.read(3, F32).tolist() == [8.0**step] * 3


def test_an_array_that_is_not_aligned_gets_the_results_all_the_same() -> None:
    model = doubling(3)
    y = aligned((3,), F32, 4)
    output = TensorBuffer.create_from_host_memory(y)
    inputs = model.create_input_buffers(0)
    for start in (1, 2):
        inputs[0].write(np.full(3, start, F32))
        model.run_by_index(0, inputs, [output])
        assert y.tolist() == output.read(3, F32).tolist() == [4 * start] * 3


def test_an_array_that_is_read_only_is_an_input_and_no_output() -> None:
    model = doubling(3)
    x = aligned((3,), F32)
    x[...] = 2
    x.flags.writeable = False
    given = TensorBuffer.create_from_host_memory(x)
    outputs = model.create_output_buffers(0)
    model.run_by_index(0, [given], outputs)
    assert outputs[0].read(3, F32).tolist() == [8, 8, 8]
    with pytest.raises(CompiledModelError, match="read-only"):
        model.run_by_index(0, outputs, [given])
    assert x.tolist() == [2, 2, 2]


def test_a_buffer_that_is_destroyed_is_let_go_by_the_model() -> None:
    model = doubling(3)
    x = aligned((3,), F32)
    inputs, outputs = [TensorBuffer.create_from_host_memory(x)], model.create_output_buffers(0)
    model.run_by_index(0, inputs, outputs)
    assert x.base is not None
    alive = weakref.ref(x.base)
    del x
    inputs[0].destroy()
    gc.collect()
    assert alive() is None
    with pytest.raises(ValueError, match="^TensorBuffer has been destroyed$"):
        model.run_by_index(0, inputs, outputs)
    model.run_by_index(0, model.create_input_buffers(0), outputs)
    assert outputs[0].read(3, F32).tolist() == [0, 0, 0]


def test_outputs_that_are_too_small_or_of_other_values_are_refused_and_larger_ones_taken() -> None:
    model, other = doubling(4), model_of("ABS", Spec(np.int32, [4]))
    inputs, _ = buffers_of(model)
    with pytest.raises(
        CompiledModelError, match=r"code=3.*\n└ Failed to register output tensor buffer\n└ y has the shape \[4\].*too small"
    ):
        model.run_by_index(0, inputs, [TensorBuffer.create_from_host_memory(aligned((3,), F32))])
    with pytest.raises(CompiledModelError, match="y has values of float32, the buffer of int32"):
        model.run_by_index(0, inputs, other.create_output_buffers(0))
    with pytest.raises(CompiledModelError, match="x has values of float32, the buffer of int32"):
        model.run_by_index(0, other.create_input_buffers(0), model.create_output_buffers(0))
    large = aligned((9,), F32)
    large[...] = 5
    inputs[0].write(np.ones(4, F32))
    model.run_by_index(0, inputs, [TensorBuffer.create_from_host_memory(large)])
    assert large.tolist() == [4] * 4 + [5] * 5


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.float64, np.uint32])
def test_bytes_in_an_array_are_values_of_any_type(dtype: Any) -> None:
    model = model_of("SQUEEZE", Spec(dtype, [1, 4]), outputs=(Spec(dtype, [4]),))
    values = np.array([1, 2, 3, 4], dtype)
    x, y = aligned((values.nbytes,), np.uint8), aligned((values.nbytes,), np.uint8)
    x[...] = values.view(np.uint8)
    model.run_by_index(0, [TensorBuffer.create_from_host_memory(x)], [TensorBuffer.create_from_host_memory(y)])
    assert y.view(dtype).tolist() == [1, 2, 3, 4]


def test_an_output_grows_with_values_and_shrinks_and_tells_its_shape() -> None:
    model = model_of("RANGE", *[Spec(np.int32, [])] * 3, outputs=(Spec(np.int32, [-1]),))
    inputs, outputs = buffers_of(model)
    inputs[2].write(np.array(1, np.int32))
    for limit in (5, 9, 2, 0, 9):
        inputs[1].write(np.array(limit, np.int32))
        model.run_by_index(0, inputs, outputs)
        assert outputs[0].get_tensor_details() == {"dtype": "int32", "shape": [limit]}
        assert outputs[0].read(limit, np.int32).tolist() == list(range(limit))
    with pytest.raises(CompiledModelError, match="does not fit into the buffer of 3 values"):
        model.run_by_index(0, inputs, [TensorBuffer.create_from_host_memory(aligned((3,), np.int32))])


def test_an_input_that_is_an_output_and_a_constant_that_is_one_are_written_like_any_other() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    graph.add_tensor("x", F32, [2])
    graph.add_tensor("c", F32, [2], data=np.array([7, 8], F32))
    graph.set_inputs(0)
    graph.set_outputs(0, 1)
    model = CompiledModel.from_buffer(builder.to_bytes())
    inputs, outputs = buffers_of(model)
    for start in (1, 2):
        inputs[0].write(np.full(2, start, F32))
        model.run_by_index(0, inputs, outputs)
        assert [each.read(2, F32).tolist() for each in outputs] == [[start, start], [7, 8]]
    assert model.is_fully_accelerated()  # there is no node that is not


def test_state_is_kept_between_runs_and_reset() -> None:
    features, memory = 2, 3
    weights = np.ones((1, features), F32), np.ones((1, memory), F32)
    state = Spec(F32, [1, memory], variable=True)
    content = one_op_model("SVDF", [Spec(F32, [1, features]), *weights, None, state], [Spec(F32, [1, 1])], SVDFOptions(rank=1))
    model = CompiledModel.from_buffer(content)
    inputs, outputs = buffers_of(model)
    inputs[0].write(np.ones((1, features), F32))

    def answers() -> list[float]:
        found = []
        for _ in range(2):
            model.run_by_index(0, inputs, outputs)
            found.append(float(outputs[0].read(1, F32)[0]))
        return found

    first = answers()
    assert first[0] != first[1]
    model.reset_all_variables()
    assert answers() == first


def test_threads_that_share_a_model_get_their_own_answers() -> None:
    model = doubling(2000)
    wrong: list[float] = []

    def work(value: int) -> None:
        inputs, outputs = buffers_of(model)
        inputs[0].write(np.full(2000, value, F32))
        for _ in range(40):
            model.run_by_index(0, inputs, outputs)
            found = outputs[0].read(2000, F32)
            wrong.extend(found[found != 4 * value].tolist())

    threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_model_of_free_dimensions_follows_its_buffers_and_one_of_fixed_ones_refuses() -> None:
    free = model_of("ABS", Spec(F32, [1, 2], signature=[-1, 2]))
    for rows in (3, 1, 4):
        x = np.full((rows, 2), -rows, F32)
        free.resize_input_tensor(0, [rows, 2])
        outputs = free.create_output_buffers(0)
        free.run_by_index(0, [TensorBuffer.create_from_host_memory(x)], outputs)
        assert outputs[0].read((rows, 2), F32).tolist() == (-x).tolist()
    [details] = free.get_input_tensor_details("").values()
    assert details["shape"] == [4, 2]
    fixed = doubling(3)
    with pytest.raises(CompiledModelError, match="Cannot auto-resize tensor x: no dims_signature exists"):
        fixed.run_by_index(0, doubling(4).create_input_buffers(0), fixed.create_output_buffers(0))
    with pytest.raises(CompiledModelError, match="rank mismatch"):
        free.run_by_index(0, fixed.create_input_buffers(0), free.create_output_buffers(0))
    assert TensorType.FLOAT32 is free.create_input_buffers(0)[0].capsule.type


def caching(steps: int) -> CompiledModel:
    """A cache of which each run replaces one value."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    old, value, at, new = (
        graph.add_tensor(name, kind, shape)
        for name, kind, shape in (("old", F32, [steps]), ("value", F32, [1]), ("at", "int32", [1]), ("new", F32, [steps]))
    )
    graph.add_operator("DYNAMIC_UPDATE_SLICE", [old, value, at], [new])
    graph.set_inputs(old, value, at)
    graph.set_outputs(new)
    return CompiledModel.from_buffer(builder.to_bytes())


def test_a_cache_that_is_one_buffer_as_input_and_output_is_written_in_place() -> None:
    model = caching(SIZE)
    (cache, value, at), _ = buffers_of(model)
    cache.write(np.zeros(SIZE, F32))
    peaks = []
    for step in range(100):
        value.write(np.array([step + 1], F32))
        at.write(np.array([step], np.int32))
        tracemalloc.start()
        model.run_by_index(0, [cache, value, at], [cache])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert cache.read(101, F32).tolist() == [*range(1, 101), 0]
    assert max(peaks[1:]) < SIZE  # a quarter of the cache
    runner = SubgraphRunner(model.interpreter)
    assert runner.tensor(0).data.__array_interface__["data"] == runner.tensor(3).data.__array_interface__["data"]


def test_caches_that_are_swapped_from_step_to_step_have_what_each_step_wrote() -> None:
    model = caching(50)
    (first, value, at), [second] = buffers_of(model)
    first.write(np.zeros(50, F32))
    for step in range(40):
        value.write(np.array([step + 1], F32))
        at.write(np.array([step], np.int32))
        model.run_by_index(0, [first, value, at], [second])
        first, second = second, first
    assert first.read(41, F32).tolist() == [*range(1, 41), 0]
