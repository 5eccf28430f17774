"""Asynchronous execution: LiteRT's rules about backends, tasks, waiting and finishing, whatever the kernel."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, add_chain, interpret, like_input

from oplet import (
    NUMPY_BUFFER,
    AsyncKernel,
    AsyncSignatureRunner,
    BackendBuffer,
    BufferAttribute,
    Context,
    Delegate,
    DelegateKernel,
    DelegateParams,
    ExecutionTask,
    Interpreter,
    IoType,
    ModelBuilder,
    MutableOpResolver,
    Node,
    Registration,
    SimpleDelegate,
    TaskStatus,
    ThreadedAsyncKernel,
)
from oplet.delegates.delegate import DelegateContext, DelegateFlags
from oplet.errors import DelegateError, InvokeError, PrepareError, SignatureError, StateError, TensorError

NUMPY = {BufferAttribute.RESOURCE_TYPE_NAME: NUMPY_BUFFER}


class Doubler(DelegateKernel):
    """Doubles its input; waits for the gate; fails on negative numbers."""

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate

    def prepare(self, context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        x, y = node.inputs[0].data, node.outputs[0].data

        def run() -> None:
            assert self.gate.wait(600)
            if x.min() < 0:
                raise ValueError("negative")
            np.multiply(x, 2, out=y)

        return run

    def async_kernel(self, context: Context, node: Node) -> AsyncKernel | None:
        return Counting(self.bind)


class Counting(ThreadedAsyncKernel):
    """Counts what it is asked for; fails on demand."""

    def __init__(self, bind: Any) -> None:
        super().__init__(bind)
        self.calls: list[str] = []
        self.failing: set[str] = set()

    def _note(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failing:
            raise OSError(f"{name} is broken")

    def prepare(self, context: Context, node: Node) -> None:
        self._note("prepare")
        super().prepare(context, node)

    def eval(self, context: Context, node: Node, task: ExecutionTask) -> None:
        self._note("eval")
        super().eval(context, node, task)

    def wait(self, context: Context, task: ExecutionTask) -> None:
        super().wait(context, task)
        self._note("wait")

    def finish(self, context: Context, task: ExecutionTask) -> None:
        super().finish(context, task)
        self._note("finish")


class All(SimpleDelegate):
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS
    name = "All"

    def __init__(self, kernel: Callable[[], DelegateKernel], wanted: set[int] | None = None) -> None:
        super().__init__()
        self.kernel = kernel
        self.wanted = wanted

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        return self.wanted is None or node.index in self.wanted

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return self.kernel()


def model(nodes: int = 1, *, signature: bool = True) -> bytes:
    builder = ModelBuilder()
    add_chain(builder, nodes, op="Double")
    if signature:
        builder.add_signature("serve", {"x": 0}, {"y": nodes})
    return builder.to_bytes()


def make(*delegates: Delegate, nodes: int = 1, signature: bool = True) -> Interpreter:
    ops = MutableOpResolver()
    ops.add_custom("Double", Registration(prepare=like_input, invoke=lambda context, node: None))
    return interpret(model(nodes, signature=signature), *delegates, op_resolver=ops)


class Setup:
    """A runner whose kernel runs when the gate is open."""

    def __init__(self) -> None:
        self.gate = gate = threading.Event()
        gate.set()
        self.interpreter = make(All(lambda: Doubler(gate)))
        self.runner = self.interpreter.get_async_signature_runner("serve")
        kernel = self.runner._backend.kernel
        assert isinstance(kernel, Counting)
        self.kernel = kernel
        self.runner.prepare_backends()

    def register(self, io: IoType, values: list[float]) -> tuple[int, Any]:
        array = np.array(values, F32)
        return self.runner.register_buffer(io, BackendBuffer(array), NUMPY), array

    def task(self, values: list[float]) -> tuple[ExecutionTask, Any]:
        task = self.runner.create_task()
        task.set_buffer("x", self.register(IoType.INPUT, values)[0])
        handle, y = self.register(IoType.OUTPUT, [0, 0, 0])
        task.set_buffer("y", handle)
        return task, y


@pytest.fixture
def setup() -> Setup:
    return Setup()


def test_a_task_reads_and_writes_the_buffers_that_it_was_given(setup: Setup) -> None:
    task, y = setup.task([1, 2, 3])
    setup.runner.invoke_async(task)
    setup.runner.wait(task)
    assert y.tolist() == [2, 4, 6]
    assert (task.status, task.error, task.scheduled) == (TaskStatus.OK, None, False)
    setup.runner.finish(task)


def test_invoke_async_returns_before_the_work_is_done(setup: Setup) -> None:
    setup.gate.clear()
    task, y = setup.task([1, 2, 3])
    setup.runner.invoke_async(task)
    assert task.scheduled
    assert y.tolist() == [0, 0, 0]
    setup.gate.set()
    setup.runner.wait(task)
    assert y.tolist() == [2, 4, 6]


def test_several_tasks_may_be_in_flight(setup: Setup) -> None:
    setup.gate.clear()
    tasks = [setup.task([i, i + 1, i + 2]) for i in range(8)]
    for task, _ in tasks:
        setup.runner.invoke_async(task)
    setup.gate.set()
    for task, _ in reversed(tasks):
        setup.runner.wait(task)
    assert [y.tolist() for _, y in tasks] == [[2 * i, 2 * i + 2, 2 * i + 4] for i in range(8)]


def test_a_scheduled_task_cannot_be_scheduled_again_until_someone_waited(setup: Setup) -> None:
    task, y = setup.task([1, 1, 1])
    setup.runner.invoke_async(task)
    with pytest.raises(StateError, match="The task has already been scheduled for execution."):
        setup.runner.invoke_async(task)
    with pytest.raises(StateError, match="already been scheduled"):
        task.set_buffer("y", task.buffers[1])
    setup.runner.wait(task)
    y[:] = 0
    setup.runner.invoke_async(task)
    setup.runner.wait(task)
    assert y.tolist() == [2, 2, 2]


def test_of_many_threads_that_schedule_a_task_one_succeeds(setup: Setup) -> None:
    setup.gate.clear()
    task, _ = setup.task([1, 1, 1])
    answers: list[str] = []

    def schedule() -> None:
        try:
            setup.runner.invoke_async(task)
            answers.append("scheduled")
        except StateError:
            answers.append("refused")

    threads = [threading.Thread(target=schedule) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    setup.gate.set()
    assert sorted(answers) == ["refused"] * 7 + ["scheduled"]
    setup.runner.finish(task)


@pytest.mark.parametrize("value", [1, -1], ids=["success", "failure"])
def test_all_who_wait_get_the_same_answer_and_the_kernel_is_asked_once(setup: Setup, value: float) -> None:
    setup.gate.clear()
    task, _ = setup.task([value] * 3)
    setup.runner.invoke_async(task)
    answers: list[str] = []

    def wait() -> None:
        try:
            setup.runner.wait(task)
            answers.append("")
        except InvokeError as error:
            answers.append(str(error))

    threads = [threading.Thread(target=wait) for _ in range(6)]
    for thread in threads:
        thread.start()
    setup.gate.set()
    for thread in threads:
        thread.join()
    wait()
    wait()
    assert len(answers) == 8
    assert len(set(answers)) == 1
    assert ("negative" in answers[0]) == (value < 0)
    assert task.status is (TaskStatus.OK if value > 0 else TaskStatus.ERROR)
    assert setup.kernel.calls.count("wait") == (1 if value > 0 else 0)


def test_a_failure_names_the_node_and_the_task_can_run_again(setup: Setup) -> None:
    task = setup.runner.create_task()
    handle, x = setup.register(IoType.INPUT, [-1, 0, 0])
    task.set_buffer("x", handle)
    handle, y = setup.register(IoType.OUTPUT, [0, 0, 0])
    task.set_buffer("y", handle)
    setup.runner.invoke_async(task)
    with pytest.raises(InvokeError, match=r"ValueError: negative. Node number 1 \(All\) failed to invoke"):
        setup.runner.wait(task)
    assert isinstance(task.error, InvokeError)
    x[:] = 4
    setup.runner.invoke_async(task)
    assert task.status is TaskStatus.OK
    setup.runner.wait(task)
    assert y.tolist() == [8, 8, 8]


def test_an_execution_that_cannot_be_started_leaves_the_task_idle(setup: Setup) -> None:
    task, y = setup.task([1, 1, 1])
    setup.kernel.failing.add("eval")
    with pytest.raises(InvokeError, match="OSError: eval is broken.*failed to start"):
        setup.runner.invoke_async(task)
    assert (task.status, task.scheduled) == (TaskStatus.ERROR, False)
    with pytest.raises(InvokeError, match="eval is broken"):
        setup.runner.wait(task)
    setup.kernel.failing.clear()
    setup.runner.invoke_async(task)
    setup.runner.wait(task)
    assert y.tolist() == [2, 2, 2]


def test_waiting_for_a_task_that_was_never_started_returns_at_once(setup: Setup) -> None:
    setup.runner.wait(setup.runner.create_task())
    assert setup.kernel.calls == ["prepare"]


def test_finish_waits_and_happens_once(setup: Setup) -> None:
    setup.gate.clear()
    task, y = setup.task([1, 1, 1])
    setup.runner.invoke_async(task)
    threading.Timer(0.05, setup.gate.set).start()
    setup.runner.finish(task)
    assert y.tolist() == [2, 2, 2]
    for use in (setup.runner.finish, setup.runner.wait, setup.runner.invoke_async):
        with pytest.raises(StateError, match="finished already"):
            use(task)
    with pytest.raises(StateError, match="finished already"):
        task.set_buffer("x", 0)
    assert setup.kernel.calls.count("finish") == 1


def test_finish_succeeds_after_a_failed_execution_and_tells_its_own_failure(setup: Setup) -> None:
    task, _ = setup.task([-1, 0, 0])
    setup.runner.invoke_async(task)
    setup.runner.finish(task)
    assert task.status is TaskStatus.ERROR
    other, _ = setup.task([1, 0, 0])
    setup.kernel.failing.add("finish")
    with pytest.raises(InvokeError, match="Failed to finish task. OSError: finish is broken"):
        setup.runner.finish(other)
    assert other.finished


def test_a_with_block_finishes_its_task(setup: Setup) -> None:
    with setup.runner.create_task() as task:
        pass
    assert task.finished
    with setup.runner.create_task() as task:
        setup.runner.finish(task)
    assert setup.kernel.calls.count("finish") == 2


def test_await_does_not_block_the_event_loop(setup: Setup) -> None:
    setup.gate.clear()

    async def main() -> list[list[float]]:
        tasks = [setup.task([i] * 3) for i in range(4)]
        for task, _ in tasks:
            setup.runner.invoke_async(task)

        async def wait(task: ExecutionTask) -> None:
            await task

        waiting = asyncio.gather(*(wait(task) for task, _ in tasks))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        setup.gate.set()
        await waiting
        return [y.tolist() for _, y in tasks]

    assert asyncio.run(main()) == [[0] * 3, [2] * 3, [4] * 3, [6] * 3]


def test_await_raises_the_failure(setup: Setup) -> None:
    async def main() -> None:
        task, _ = setup.task([-1, 0, 0])
        setup.runner.invoke_async(task)
        await task

    with pytest.raises(InvokeError, match="negative"):
        asyncio.run(main())


def test_the_graph_must_be_one_delegates_only_node() -> None:
    gate = threading.Event()
    for interpreter in (make(), make(All(lambda: Doubler(gate), {0}), nodes=2), make(nodes=3)):
        with pytest.raises(DelegateError, match=r"^Model is not fully delegated by 1 backend\."):
            interpreter.get_async_signature_runner()


def test_two_delegates_are_one_backend_too_many() -> None:
    gate = threading.Event()
    interpreter = make(All(lambda: Doubler(gate), {0}), All(lambda: Doubler(gate)), nodes=2)
    with pytest.raises(DelegateError, match="Model is not fully delegated by 1 backend.*runs 2 node"):
        interpreter.get_async_signature_runner()


class Synchronous(Doubler):
    def async_kernel(self, context: Context, node: Node) -> Any:
        return None


class Confused(Doubler):
    def async_kernel(self, context: Context, node: Node) -> Any:
        return "no kernel"


def test_the_backend_must_support_asynchronous_execution() -> None:
    gate = threading.Event()
    with pytest.raises(DelegateError, match=r"^Backend does not support asynchronous execution\."):
        make(All(lambda: Synchronous(gate))).get_async_signature_runner()
    with pytest.raises(DelegateError, match="is a str, no AsyncKernel"):
        make(All(lambda: Confused(gate))).get_async_signature_runner()


def test_nothing_runs_before_the_backend_is_prepared() -> None:
    setup = Setup()
    task, _ = setup.task([1, 1, 1])
    runner = make(All(lambda: Doubler(setup.gate))).get_async_signature_runner()
    with pytest.raises(StateError, match="call prepare_backends first"):
        runner.create_task()
    setup.runner.set_attributes("x", {**NUMPY, BufferAttribute.SIZE: 12})
    with pytest.raises(StateError, match="call prepare_backends first"):
        setup.runner.invoke_async(task)
    setup.runner.prepare_backends()
    setup.interpreter.resize_tensor_input(0, [4])
    with pytest.raises(StateError, match="call prepare_backends first"):
        setup.runner.invoke_async(task)
    setup.runner.prepare_backends()
    with pytest.raises(InvokeError, match=r"buffer for tensor 0 't0' \(FLOAT32 \[4\]\) is an array of float32 \[3\]"):
        setup.runner.invoke_async(task)
    setup.kernel.failing.add("prepare")
    with pytest.raises(PrepareError, match="prepare is broken"):
        setup.runner.prepare_backends()
    with pytest.raises(StateError, match="call prepare_backends first"):
        setup.runner.create_task()


def test_while_a_task_is_in_flight_the_interpreter_stands_still(setup: Setup) -> None:
    setup.gate.clear()
    task, y = setup.task([1, 1, 1])
    setup.runner.invoke_async(task)
    serve = setup.interpreter.get_signature_runner("serve")
    for use in (
        setup.interpreter.invoke,
        setup.interpreter.allocate_tensors,
        lambda: setup.interpreter.resize_tensor_input(0, [5]),
        lambda: setup.interpreter.modify_graph_with_delegate(All(lambda: Doubler(setup.gate))),
        lambda: serve(x=np.zeros(3, F32)),
        setup.runner.prepare_backends,
        lambda: setup.runner.set_attributes("x", NUMPY),
    ):
        with pytest.raises(StateError, match=r"1 asynchronous task\(s\) are in flight"):
            use()
    setup.gate.set()
    setup.runner.wait(task)
    assert y.tolist() == [2, 2, 2]
    assert serve(x=np.full(3, 5, F32))["y"].tolist() == [10, 10, 10]


def test_closing_the_interpreter_waits_and_finishes_what_is_left(setup: Setup) -> None:
    setup.gate.clear()
    task, y = setup.task([1, 1, 1])
    setup.runner.invoke_async(task)
    threading.Timer(0.05, setup.gate.set).start()
    setup.interpreter.close()
    assert y.tolist() == [2, 2, 2]
    assert task.finished
    assert setup.kernel.calls.count("finish") == 1
    with pytest.raises(StateError, match="interpreter was closed"):
        setup.runner.create_task()


def test_closing_finishes_every_task_whatever_one_of_them_raises(setup: Setup) -> None:
    tasks = [setup.task([1, 1, 1])[0] for _ in range(3)]
    setup.kernel.failing.add("finish")
    with pytest.raises(InvokeError, match="Failed to finish task"):
        setup.interpreter.close()
    assert all(task.finished for task in tasks)
    assert setup.kernel.calls.count("finish") == 3
    setup.interpreter.close()


def test_the_worker_thread_goes_with_the_interpreter() -> None:
    before = set(threading.enumerate())
    setup = Setup()
    task, _ = setup.task([1, 1, 1])
    setup.runner.invoke_async(task)
    setup.runner.finish(task)
    workers = set(threading.enumerate()) - before
    assert [thread.name for thread in workers] == ["oplet-async_0"]
    del task, setup
    deadline = time.monotonic() + 600
    while any(thread.is_alive() for thread in workers) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(thread.is_alive() for thread in workers)


def test_handles_must_be_registered(setup: Setup) -> None:
    task, _ = setup.task([1, 1, 1])
    for use in (lambda: task.set_buffer("x", 99), lambda: setup.runner.unregister_buffer(99)):
        with pytest.raises(TensorError, match="No buffer is registered under the handle 99"):
            use()
    handle = task.buffer("x")
    assert handle is not None
    setup.runner.unregister_buffer(handle)
    with pytest.raises(TensorError, match=f"No buffer is registered under the handle {handle}"):
        setup.runner.invoke_async(task)
    with pytest.raises(TensorError, match=f"the handle {handle}"):
        setup.runner.unregister_buffer(handle)


def test_a_buffer_in_use_cannot_be_unregistered(setup: Setup) -> None:
    setup.gate.clear()
    task, _ = setup.task([1, 1, 1])
    setup.runner.invoke_async(task)
    with pytest.raises(StateError, match="used by a task in flight"):
        setup.runner.unregister_buffer(task.buffers[0])
    setup.gate.set()
    setup.runner.wait(task)
    setup.runner.unregister_buffer(task.buffers[0])


def test_tensors_are_found_by_name_or_index(setup: Setup) -> None:
    assert (setup.runner.input_names, setup.runner.output_names) == (["x"], ["y"])
    assert setup.runner.get_input_details()["x"]["name"] == "t0"
    assert setup.runner.get_output_details()["y"]["index"] == 1
    task, y = setup.task([1, 1, 1])
    handle, _ = setup.register(IoType.INPUT, [5, 5, 5])
    task.set_buffer(0, handle)
    assert task.buffer("x") == task.buffer(0) == handle
    setup.runner.invoke_async(task)
    setup.runner.wait(task)
    assert y.tolist() == [10, 10, 10]
    with pytest.raises(SignatureError, match="Signature tensor name z was not found. The inputs are x, the outputs y"):
        task.set_buffer("z", handle)
    with pytest.raises(SignatureError, match="Signature tensor name x was not found"):
        task.set_buffer("x", handle, IoType.OUTPUT)
    with pytest.raises(SignatureError, match="Tensor 7 is no input or output"):
        task.buffer(7)


def test_a_model_without_signatures_goes_by_the_names_of_its_tensors() -> None:
    gate = threading.Event()
    runner = make(All(lambda: Doubler(gate)), signature=False).get_async_signature_runner()
    assert isinstance(runner, AsyncSignatureRunner)
    assert (runner.input_names, runner.output_names) == (["t0"], ["t1"])
    with pytest.raises(SignatureError, match='Invalid signature_key provided: "other"'):
        make(All(lambda: Doubler(gate))).get_async_signature_runner("other")


def test_tasks_belong_to_the_subgraph_that_made_them(setup: Setup) -> None:
    with pytest.raises(StateError, match="no task of this runner"):
        setup.runner.invoke_async(Setup().runner.create_task())
    again = setup.interpreter.get_async_signature_runner()
    task, y = setup.task([1, 1, 1])
    again.invoke_async(task)
    setup.runner.wait(task)
    assert y.tolist() == [2, 2, 2]
