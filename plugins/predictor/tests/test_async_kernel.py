"""What a threaded kernel takes as buffers, how attributes are agreed on, and how models wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import (
    NO_SYNC_OBJECT,
    NUMPY_BUFFER,
    THREADING_EVENT,
    AsyncKernel,
    AsyncSignatureRunner,
    BackendBuffer,
    BufferAttribute,
    Context,
    DelegateKernel,
    DelegateParams,
    Interpreter,
    IoType,
    ModelBuilder,
    MutableOpResolver,
    Node,
    PluginManager,
    Reconciliation,
    Registration,
    SimpleDelegate,
    Synchronization,
    SynchronizationAttribute,
    ThreadedAsyncKernel,
    reconcile_attributes,
    uncovered_attributes,
)
from oplet.delegates.delegate import DelegateContext
from oplet.errors import InvokeError, PrepareError, StateError, TensorError

F32 = np.float32
TYPE, SIZE, OFFSET, ALIGNMENT, PADDING = (
    BufferAttribute.RESOURCE_TYPE_NAME,
    BufferAttribute.SIZE,
    BufferAttribute.OFFSET,
    BufferAttribute.ALIGNMENT,
    BufferAttribute.PADDING,
)
SYNC = SynchronizationAttribute.OBJECT_TYPE_NAME
NUMPY = {TYPE: NUMPY_BUFFER}


class Doubler(DelegateKernel):
    def prepare(self, context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        x, y = node.inputs[0].data, node.outputs[0].data
        return lambda: np.copyto(y, x * 2)

    def async_kernel(self, context: Context, node: Node) -> AsyncKernel:
        return ThreadedAsyncKernel(self.bind)


class All(SimpleDelegate):
    name = "All"

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool:
        return True

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Doubler()


def runner() -> AsyncSignatureRunner:
    """Of a model that doubles three floats."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", F32, [3]), graph.add_tensor("y", F32, [3])
    graph.add_operator("Double", [x], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    ops = MutableOpResolver()
    ops.add_custom("Double", Registration(invoke=print))
    interpreter = Interpreter(
        model_content=builder.to_bytes(),
        op_resolver=ops,
        plugins=PluginManager(entry_points=()),
        experimental_delegates=[All()],
    )
    made = interpreter.get_async_signature_runner()
    made.prepare_backends()
    return made


@pytest.fixture
def doubling() -> AsyncSignatureRunner:
    return runner()


def run(doubling: AsyncSignatureRunner, x: int, y: int) -> None:
    with doubling.create_task() as task:
        task.set_buffer("x", x)
        task.set_buffer("y", y)
        doubling.invoke_async(task)
        doubling.wait(task)


def test_slices_of_one_pool_hold_input_and_output(doubling: AsyncSignatureRunner) -> None:
    pool = np.zeros(40, np.uint8)
    pool[4:16] = np.array([1, 2, 3], F32).view(np.uint8)
    whole = doubling.register_buffer(IoType.OUTPUT, BackendBuffer(pool), NUMPY)
    x = doubling.register_buffer_slice(whole, {OFFSET: 4, SIZE: 12})
    y = doubling.register_buffer_slice(whole, {OFFSET: 17, SIZE: 20})
    run(doubling, x, y)
    assert pool[17:29].tobytes() == np.array([2, 4, 6], F32).tobytes()
    assert not pool[29:].any()


def test_a_buffer_may_be_a_part_of_an_array_or_strided(doubling: AsyncSignatureRunner) -> None:
    x, y = np.arange(6, dtype=F32), np.zeros((3, 2), F32)
    part = doubling.register_buffer(IoType.INPUT, BackendBuffer(x), {**NUMPY, OFFSET: 8, SIZE: 12})
    column = doubling.register_buffer(IoType.OUTPUT, BackendBuffer(y[:, 1]), NUMPY)
    run(doubling, part, column)
    assert y.tolist() == [[0, 4], [0, 6], [0, 8]]


def test_a_part_of_no_size_goes_to_the_end(doubling: AsyncSignatureRunner) -> None:
    x, y = np.arange(6, dtype=F32), np.zeros(3, F32)
    part = doubling.register_buffer(IoType.INPUT, BackendBuffer(x), {**NUMPY, OFFSET: 12})
    run(doubling, part, doubling.register_buffer(IoType.OUTPUT, BackendBuffer(y), NUMPY))
    assert y.tolist() == [6, 8, 10]


def test_slices_are_checked(doubling: AsyncSignatureRunner) -> None:
    whole = doubling.register_buffer(IoType.INPUT, BackendBuffer(np.zeros(16, np.uint8)), NUMPY)
    part = doubling.register_buffer_slice(whole, {OFFSET: 4, SIZE: 12})
    with pytest.raises(TensorError, match=f"buffer {part} is a slice of buffer {whole} itself; slices are not nested"):
        doubling.register_buffer_slice(part, {SIZE: 4})
    with pytest.raises(TensorError, match="handle 99"):
        doubling.register_buffer_slice(99, {SIZE: 4})
    for attributes, reason in (
        ({OFFSET: 8, SIZE: 12}, "bytes 8 to 20 are asked for; the buffer has 16"),
        ({OFFSET: -4, SIZE: 12}, "bytes -4 to 8"),
        ({OFFSET: 4}, "a slice needs its SIZE"),
        ({SIZE: 4, OFFSET: 1, ALIGNMENT: 64}, "no multiple of the ALIGNMENT 64"),
    ):
        with pytest.raises(TensorError, match=reason):
            doubling.register_buffer_slice(whole, attributes)
    with pytest.raises(StateError, match=rf"buffer {whole} still has the slices \[{part}\]"):
        doubling.unregister_buffer(whole)
    doubling.unregister_buffer(part)
    doubling.unregister_buffer(whole)


def test_buffers_that_it_cannot_use_are_refused(doubling: AsyncSignatureRunner) -> None:
    read_only = np.zeros(3, F32)
    read_only.flags.writeable = False
    strided = np.zeros((3, 2), F32)[:, 0]
    for io, buffer, attributes, reason in (
        (IoType.INPUT, BackendBuffer(b"bytes"), NUMPY, "the buffer is a bytes; numpy arrays are possible"),
        (IoType.OUTPUT, BackendBuffer(read_only), NUMPY, "read-only"),
        (IoType.INPUT, BackendBuffer(strided), {**NUMPY, SIZE: 4}, "only a contiguous buffer"),
        (IoType.INPUT, BackendBuffer(read_only), {}, "RESOURCE_TYPE_NAME; it is None, All takes 'numpy.ndarray'"),
        (IoType.INPUT, BackendBuffer(read_only), {TYPE: "AHardwareBuffer"}, "it is 'AHardwareBuffer'"),
        (IoType.INPUT, read_only, NUMPY, "A ndarray is given as a buffer; wrap it"),
    ):
        with pytest.raises(TensorError, match=reason):
            doubling.register_buffer(io, buffer, attributes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (np.zeros(3, np.int32), "array of int32 \\[3\\]"),
        (np.zeros(2, F32), "array of float32 \\[2\\]"),
        (np.zeros(11, np.uint8), "at least 12 bytes"),
        (np.zeros(24, np.uint8)[::2], "array of uint8 \\[12\\]"),
    ],
    ids=str,
)
def test_a_buffer_must_fit_its_tensor(doubling: AsyncSignatureRunner, x: Any, reason: str) -> None:
    y = doubling.register_buffer(IoType.OUTPUT, BackendBuffer(np.zeros(3, F32)), NUMPY)
    with pytest.raises(InvokeError, match=reason):
        run(doubling, doubling.register_buffer(IoType.INPUT, BackendBuffer(x), NUMPY), y)


def test_every_tensor_needs_its_buffer_and_outputs_a_writeable_one(doubling: AsyncSignatureRunner) -> None:
    task = doubling.create_task()
    with pytest.raises(InvokeError, match="no buffer for tensor 0 'x'"):
        doubling.invoke_async(task)
    array = np.zeros(3, F32)
    array.flags.writeable = False
    handle = doubling.register_buffer(IoType.INPUT, BackendBuffer(array), NUMPY)
    with pytest.raises(InvokeError, match="the buffer for tensor 1 'y' .* is read-only"):
        run(doubling, handle, handle)


def test_buffer_attributes_can_be_read_and_replaced(doubling: AsyncSignatureRunner) -> None:
    buffer = BackendBuffer(np.arange(6, dtype=F32))
    for use in (lambda: doubling.get_buffer_attributes(buffer), lambda: doubling.set_buffer_attributes(buffer, NUMPY)):
        with pytest.raises(TensorError, match="not registered"):
            use()
    x = doubling.register_buffer(IoType.INPUT, buffer, {**NUMPY, "colour": "red"})
    assert doubling.get_buffer_attributes(buffer) == {**NUMPY, "colour": "red"}
    doubling.set_buffer_attributes(buffer, {**NUMPY, OFFSET: 12, SIZE: 12})
    assert doubling.get_buffer_attributes(buffer) == {**NUMPY, OFFSET: 12, SIZE: 12}
    out = np.zeros(3, F32)
    run(doubling, x, doubling.register_buffer(IoType.OUTPUT, BackendBuffer(out), NUMPY))
    assert out.tolist() == [6, 8, 10]


def test_it_says_what_it_supports(doubling: AsyncSignatureRunner) -> None:
    for io in IoType:
        assert doubling.get_supported_buffer_types(io) == [NUMPY_BUFFER]
        assert doubling.get_supported_synchronization_types(io) == [NO_SYNC_OBJECT, THREADING_EVENT]


def test_restrictions_are_reconciled_and_set(doubling: AsyncSignatureRunner) -> None:
    agreed = doubling.reconcile_restrictions("x", {SIZE: 16, ALIGNMENT: 8, "colour": "red"})
    assert agreed.ok
    assert agreed.merged == {TYPE: NUMPY_BUFFER, SIZE: 16, ALIGNMENT: 8, "colour": "red"}
    doubling.set_attributes("x", agreed.merged)
    other = doubling.reconcile_restrictions("x", {TYPE: "AHardwareBuffer", SYNC: "sync_fence_fd"})
    assert not other.ok
    assert other.conflicts == {TYPE: NUMPY_BUFFER, SYNC: NO_SYNC_OBJECT}
    assert doubling.reconcile_restrictions("y", {SYNC: THREADING_EVENT}).merged == {SYNC: THREADING_EVENT}
    for attributes, reason in (
        ({**NUMPY, SIZE: 11}, "SIZE = 12"),
        ({SIZE: 12}, "RESOURCE_TYPE_NAME = numpy.ndarray"),
        ({SYNC: "sync_fence_fd"}, "OBJECT_TYPE_NAME = no_sync_obj"),
    ):
        with pytest.raises(PrepareError, match=f"do not grant what the kernel needs: {reason}"):
            doubling.set_attributes("x", attributes)


def test_attributes_merge_by_litert_rules() -> None:
    merged = reconcile_attributes(
        {ALIGNMENT: 4, PADDING: 6, SIZE: 10, TYPE: "a", OFFSET: None}, {ALIGNMENT: 6, PADDING: 4, SIZE: 8, TYPE: "a", OFFSET: 2}
    )
    assert merged.merged == {ALIGNMENT: 12, PADDING: 12, SIZE: 10, TYPE: "a", OFFSET: 2}
    assert merged.ok
    conflict = reconcile_attributes({TYPE: "a", SYNC: "p"}, {TYPE: "b", SYNC: "q"})
    assert conflict == Reconciliation(conflicts={TYPE: "b", SYNC: "q"})
    assert not conflict.ok


@pytest.mark.parametrize(
    ("key", "enough", "lacking"), [(SIZE, 9, 7), (PADDING, 9, 7), (ALIGNMENT, 16, 12), (TYPE, 8, 9), (SYNC, 8, None)]
)
def test_attributes_cover_by_litert_rules(key: Any, enough: Any, lacking: Any) -> None:
    assert uncovered_attributes({key: enough, "other": 1}, {key: 8}) == {}
    assert uncovered_attributes({key: lacking}, {key: 8}) == {key: 8}
    assert uncovered_attributes({}, {key: 8}) == {key: 8}
    assert uncovered_attributes({}, {key: None}) == {}


def test_an_output_event_of_one_model_starts_another() -> None:
    first, second = runner(), runner()
    x, between, y = np.array([1, 2, 3], F32), np.zeros(3, F32), np.zeros(3, F32)
    for made, name in ((first, "x"), (first, "y"), (second, "x")):
        made.set_attributes(name, {SYNC: THREADING_EVENT})
    for made in (first, second):
        made.prepare_backends()
    start, done = threading.Event(), Synchronization()
    with first.create_task() as one, second.create_task() as two:
        one.set_buffer("x", first.register_buffer(IoType.INPUT, BackendBuffer(x), NUMPY))
        one.set_buffer("y", first.register_buffer(IoType.OUTPUT, BackendBuffer(between), NUMPY))
        two.set_buffer("x", second.register_buffer(IoType.INPUT, BackendBuffer(between), NUMPY))
        two.set_buffer("y", second.register_buffer(IoType.OUTPUT, BackendBuffer(y), NUMPY))
        one.set_synchronization("x", Synchronization(start))
        one.set_synchronization("y", done)
        first.invoke_async(one)
        assert isinstance(done.resource, threading.Event)
        two.set_synchronization("x", done)
        second.invoke_async(two)
        assert not done.resource.is_set()
        start.set()
        second.wait(two)
    assert y.tolist() == [4, 8, 12]


def test_synchronizations_count_only_where_they_were_agreed_on(doubling: AsyncSignatureRunner) -> None:
    y = np.zeros(3, F32)
    task = doubling.create_task()
    task.set_buffer("x", doubling.register_buffer(IoType.INPUT, BackendBuffer(np.ones(3, F32)), NUMPY))
    task.set_buffer("y", doubling.register_buffer(IoType.OUTPUT, BackendBuffer(y), NUMPY))
    never, unused = Synchronization(threading.Event()), Synchronization()
    task.set_synchronization("x", never)
    task.set_synchronization("y", unused)
    assert task.synchronization("x") is never
    doubling.invoke_async(task)
    doubling.wait(task)
    assert y.tolist() == [2, 2, 2]
    assert unused.resource is None
    doubling.set_attributes("x", {SYNC: THREADING_EVENT})
    doubling.prepare_backends()
    never.resource = 7
    with pytest.raises(InvokeError, match="is to wait for a int; a threading.Event was agreed on"):
        doubling.invoke_async(task)


def test_the_bases_methods_leave_open_what_only_a_backend_can_know() -> None:
    kernel, nothing = AsyncKernel(), Any
    assert kernel.supported_synchronizations(IoType.INPUT) == (NO_SYNC_OBJECT,)
    assert kernel.reconcile_restrictions(nothing, nothing, 0, NUMPY).merged == NUMPY  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        kernel.supported_buffer_types(IoType.INPUT)
