"""What every op and every delegate must keep, as a class of tests to inherit from.

`OpContract` and `DelegateContract` are the two to use; here is what they share. Each check opens interpreters of its own,
and fails with an AssertionError that says which rule was broken.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from oplet.errors import OpletError, PluginError, PrepareError
from oplet.ops.context import EnsureError, Node
from oplet.ops.serving.resolver import OpResolver
from oplet.ops.tensor import Allocation, Tensor
from oplet.plugins.manager import PluginManager
from oplet.runtime.execution.binding import bind_node
from oplet.runtime.interpreter import Interpreter
from oplet.runtime.subgraph import Subgraph
from oplet.testing.poison import POISONS, poison, spoil

__all__ = ["Contract", "Values", "check"]

Values = Sequence[NDArray[Any]]

#: Bytes that the second half of a long row of runs may leave behind or need more than the first: the interpreter of
#: Python itself is not exact to the byte.
_SLACK = 2048
_MANY = 400
_PATIENCE = 1.0  # seconds


def check(condition: object, message: str) -> None:
    """Fail the test unless `condition` holds.

    Raises:
        AssertionError: it does not.
    """
    if not condition:
        raise AssertionError(message)


class Contract:
    """What a subclass says about its subject; `model` and `inputs` are all that is needed.

    Attributes:
        model: the bytes of a model with the subject in it.
        inputs: one array per input of the model.
        other_inputs: other values of the same shapes; by default `inputs` with the order of their elements reversed.
        resized: values of other shapes; by default `inputs` twice, one after the other along the first axis. () where
            the shapes cannot change.
        empty: values without elements; by default `inputs` without their rows. () where there are none.
        refuses_empty: whether such values are refused, with `ensure`, in place of being run.
        stateful: whether an answer depends on earlier runs; checks that compare runs start afresh then.
        reference: a function of the inputs that returns the right outputs, one array or a list; None where there is none. It is asked
            for `inputs`, `other_inputs`, `resized` and `empty`.
        rtol: relative tolerance between two answers of the same kernel.
        atol: absolute tolerance.
        op_resolver: registrations to use before those of plugins.
        plugins: the plugins to use, by name or as a manager; all that are installed by default.
    """

    model: ClassVar[bytes]
    inputs: ClassVar[Values]
    other_inputs: ClassVar[Values | None] = None
    resized: ClassVar[Values | None] = None
    empty: ClassVar[Values | None] = None
    refuses_empty: ClassVar[bool] = False
    stateful: ClassVar[bool] = False
    reference: ClassVar[Callable[..., Any] | None] = None
    rtol: ClassVar[float] = 1e-5
    atol: ClassVar[float] = 1e-6
    op_resolver: ClassVar[OpResolver | None] = None
    plugins: ClassVar[PluginManager | Sequence[str] | None] = None

    # For subclasses ------------------------------------------------------------------------------------------

    @contextmanager
    def opened(self, **arguments: Any) -> Iterator[Interpreter]:
        """An interpreter with the subject in it, closed at the end."""
        self._check_attributes()
        given = {"model_content": self.model, "op_resolver": self.op_resolver, "plugins": self.plugins, **arguments}
        interpreter = Interpreter(**given)
        try:
            yield interpreter
        finally:
            interpreter.close()

    def _check_attributes(self) -> None:
        name = type(self).__name__
        model = getattr(self, "model", None)
        check(
            isinstance(model, (bytes, bytearray)),
            f"{name}.model is {_kind(model)}; give it the bytes of a model, as one_op_model returns",
        )
        for attribute in ("inputs", "other_inputs", "resized", "empty"):
            values = getattr(self, attribute, None)
            if values is None and attribute != "inputs":
                continue
            fits = isinstance(values, (list, tuple)) and all(isinstance(value, np.ndarray) for value in values)
            check(fits, f"{name}.{attribute} is {_kind(values)}; give it a list with a numpy array for each input of the model")

    def fresh(self, values: Values) -> list[NDArray[Any]]:
        """The answer of an interpreter that ran nothing else."""
        with self.opened() as interpreter:
            return run(interpreter, values)

    def same(self, got: Values, wanted: Values, rule: str) -> None:
        """Fail with the rule unless two answers agree."""
        for number, (one, other) in enumerate(zip(got, wanted)):
            check(one.dtype == other.dtype, f"{rule}: output {number} is {one.dtype}, not {other.dtype}")
            check(one.shape == other.shape, f"{rule}: output {number} has the shape {one.shape}, not {other.shape}")
            if one.dtype.kind in "fc":
                np.testing.assert_allclose(one, other, self.rtol, self.atol, err_msg=f"{rule}: output {number} differs")
            else:
                np.testing.assert_array_equal(one, other, err_msg=f"{rule}: output {number} differs")

    def _others(self) -> Values:
        return [x.reshape(-1)[::-1].reshape(x.shape) for x in self.inputs] if self.other_inputs is None else self.other_inputs

    def _resized(self) -> Values:
        if self.resized is not None:
            return self.resized
        return [np.concatenate([x, x]) if x.ndim else x for x in self.inputs]

    def _empty(self) -> Values:
        return [x[:0] if x.ndim else x for x in self.inputs] if self.empty is None else self.empty

    # The checks ----------------------------------------------------------------------------------------------

    def test_preparing_twice_is_like_preparing_once(self) -> None:
        with self.opened() as interpreter:
            first = run(interpreter, self.inputs)
            before = _state(interpreter)
            for _ in range(2):
                prepare_again(interpreter)
            after = _state(interpreter)
            check(after == before, f"prepared again, the node has other shapes, types or temporaries: {after}, not {before}")
            if not self.stateful:
                self.same(run(interpreter, self.inputs), first, "prepared again, it answers otherwise")

    def test_a_resized_graph_answers_as_a_fresh_one_of_that_size(self) -> None:
        resized = self._resized()
        if not resized:
            return
        with self.opened() as interpreter:
            for values, size in (
                (self.inputs, "the first size"),
                (resized, "another size"),
                (self.inputs, "the first size again"),
            ):
                got = run(interpreter, values)
                if not self.stateful or values is resized:
                    self.same(got, self.fresh(values), f"after a resize to {size}")

    def test_every_run_reads_the_present_values(self) -> None:
        others = self._others()
        with self.opened() as interpreter:
            run(interpreter, self.inputs)
            if not self.stateful:
                self.same(run(interpreter, others), self.fresh(others), "with other values in the inputs")

    def test_no_buffer_of_an_earlier_preparation_is_used(self) -> None:
        others = self._others()
        with self.opened() as interpreter:
            run(interpreter, self.inputs)
            stale = _arrays(interpreter)
            if self._resized():
                run(interpreter, self._resized())
            replace_memory(interpreter)
            run(interpreter, self.inputs)
            for array in stale:
                spoil(array, POISONS[0])
            before = [array.copy() for array in stale]
            got = run(interpreter, others)
            for array, value in zip(stale, before):
                check(identical(array, value), "it writes into a buffer that it was given before a resize")
            if not self.stateful:
                self.same(got, self.fresh(others), "it reads a buffer that it was given before a resize")

    def test_tensors_of_no_elements_are_no_trouble(self) -> None:
        values = self._empty()
        if not any(x.size == 0 for x in values):
            return
        with self.opened() as interpreter:
            try:
                got = run(interpreter, values)
            except PrepareError as error:
                by_rule = isinstance(error.__cause__, EnsureError)
                hint = " (if that is its rule, say refuses_empty = True)" if by_rule else ""
                check(by_rule and self.refuses_empty, f"with tensors of no elements it fails: {error}{hint}")
                return
            except OpletError as error:
                raise AssertionError(f"with tensors of no elements it fails: {error}") from error
            check(not self.refuses_empty, "it runs on tensors of no elements, which it is said to refuse")
            self.same(got, self.fresh(values), "on tensors of no elements")

    def test_every_element_of_every_output_is_written(self) -> None:
        got = []
        for byte in POISONS:
            with self.opened() as interpreter:
                allocate(interpreter, self.inputs)
                poison(interpreter, byte)
                feed(interpreter, self.inputs)
                interpreter.invoke()
                got.append(answers(interpreter))
        self.same(got[0], got[1], "what lay in its outputs or its scratch before the run shows in the answer")

    def test_the_answers_are_those_of_the_reference(self) -> None:
        reference = type(self).reference
        if reference is None:
            return
        for values, which in (
            (self.inputs, "the inputs"),
            (self._others(), "other inputs"),
            (self._resized(), "inputs of another size"),
            (() if self.refuses_empty else self._empty(), "tensors of no elements"),
        ):
            if values:
                wanted = reference(*values)
                wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
                self.same(self.fresh(values), [np.asarray(each) for each in wanted], f"for {which}, the reference says otherwise")

    def test_outputs_are_written_not_replaced(self) -> None:
        with self.opened() as interpreter:
            try:
                run(interpreter, self.inputs)
                outputs = [t for node in plan(interpreter) for t in node.outputs if not t.is_dynamic]  # known once it is prepared
                before = [t.data for t in outputs]
                run(interpreter, self._others())
            except PluginError as error:
                raise AssertionError(f"a run replaces an output's array: {error}") from error
            for tensor, array in zip(outputs, before):
                check(tensor.data is array, f"the run replaced the array of {tensor}, which others hold, in place of writing it")

    def test_inputs_are_not_written(self) -> None:
        with self.opened() as interpreter:
            run(interpreter, self.inputs)
            for detail, fed in zip(interpreter.get_input_details(), self.inputs):
                kept = identical(interpreter.get_tensor(detail["index"]), fed)
                check(kept, f"the run changed the input '{detail['name']}', which other nodes read")

    def test_constants_are_not_written(self) -> None:
        wanted = self.fresh(self.inputs)
        with self.opened() as interpreter:
            constants = [copy for copy, tensor in zip(self.inputs, _inputs(interpreter)) if _make_constant(tensor, copy)]
            interpreter._subgraph(0).invalidate()
            held = [t for node in plan(interpreter) for t in node.inputs if t is not None and t.is_constant]
            before = [t.data.copy() for t in held]
            arrays = [t.data for t in held]
            interpreter.allocate_tensors()
            interpreter.invoke()
            got = answers(interpreter)
            for tensor, array, value in zip(held, arrays, before):
                check(identical(array, value), f"it wrote into the constant {tensor}")
                check(not array.flags.writeable, f"it made the constant {tensor} writeable")
            if constants:
                self.same(got, wanted, "with constants in place of inputs")

    def test_two_interpreters_know_nothing_of_each_other(self) -> None:
        values = (self.inputs, self._others())
        wanted = [self.fresh(each) for each in values]
        with self.opened() as one, self.opened() as two:
            both = (one, two)
            for interpreter, each in zip(both, values):
                allocate(interpreter, each)
            for interpreter, each in zip(both, values):
                feed(interpreter, each)
            for interpreter in both:
                interpreter.invoke()
            for interpreter, answer in zip(both, wanted):
                self.same(answers(interpreter), answer, "with a second interpreter at work")
            if not self.stateful:
                self._race(both, values, wanted)

    def _race(self, interpreters: Sequence[Interpreter], values: Sequence[Values], wanted: Sequence[Values]) -> None:
        failures: list[BaseException] = []
        barrier = threading.Barrier(len(interpreters))

        def work(interpreter: Interpreter, feeds: Values, answer: Values) -> None:
            barrier.wait()
            end = time.monotonic() + _PATIENCE / 4
            try:
                while time.monotonic() < end and not failures:
                    feed(interpreter, feeds)
                    interpreter.invoke()
                    self.same(answers(interpreter), answer, "with a second interpreter in another thread")
            except BaseException as error:
                failures.append(error)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=work, args=each) for each in zip(interpreters, values, wanted)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        if failures:
            raise AssertionError(str(failures[0])) from failures[0]

    def test_many_runs_take_no_more_memory_than_few(self) -> None:
        with self.opened() as interpreter:
            run(interpreter, self.inputs)
            for _ in range(3):  # other threads of the process allocate too
                growth = _growth(interpreter.invoke)
                if growth < _SLACK:
                    return
            raise AssertionError(f"it takes {growth} bytes more with each {_MANY} runs")


# What the checks do with an interpreter -----------------------------------------------------------------------


def allocate(interpreter: Interpreter, values: Values) -> None:
    """Give the inputs the shapes of these values, and prepare."""
    for detail, value in zip(interpreter.get_input_details(), values):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()


def feed(interpreter: Interpreter, values: Values) -> None:
    """Set the inputs; tensors that were made constants are left alone."""
    details = interpreter.get_input_details()
    check(len(details) == len(values), f"the model has {len(details)} inputs, the contract names {len(values)}")
    for detail, value in zip(details, values):
        interpreter.set_tensor(detail["index"], value)


def run(interpreter: Interpreter, values: Values) -> list[NDArray[Any]]:
    """Resize if need be, set the inputs, invoke, and copy the outputs."""
    allocate(interpreter, values)
    poison(interpreter, POISONS[0])
    feed(interpreter, values)
    interpreter.invoke()
    return answers(interpreter)


def graph(interpreter: Interpreter) -> Subgraph:
    """The subgraph that runs."""
    return interpreter._subgraphs[0]


def plan(interpreter: Interpreter) -> list[Node]:
    """The nodes that run."""
    subgraph = graph(interpreter)
    return [subgraph.nodes[index] for index in subgraph.execution_plan]


def prepare_again(interpreter: Interpreter) -> None:
    """Prepare, plan and bind once more, for the same shapes."""
    graph(interpreter).invalidate()
    interpreter.allocate_tensors()


def replace_memory(interpreter: Interpreter) -> None:
    """Make the next preparation put every tensor elsewhere."""
    interpreter._executors[0].release()


def answers(interpreter: Interpreter) -> list[NDArray[Any]]:
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def write_over(interpreter: Interpreter, values: Values, number: int) -> bool:
    """Prepare a model of one node, its output in the memory of one of the inputs that it offers, and set the inputs.

    Args:
        number: which one, of those that the runtime might take.

    Returns:
        Whether there is such an input.
    """
    allocate(interpreter, values)
    nodes, segments = plan(interpreter), graph(interpreter).segments
    if len(nodes) != 1 or len(segments) != 1 or not segments[0].thunks:
        return False
    (node,), output = nodes, nodes[0].outputs[0]
    if output.is_dynamic or output.dtype.hasobject:
        return False
    given = [t for t in node.in_place if t in _inputs(interpreter) and t.nbytes == output.nbytes and not t.is_variable]
    if number >= len(given):
        return False
    output.set_memory(given[number].data.reshape(-1).view(output.dtype).reshape(output.shape))
    segments[0].thunks[:] = [bind_node(interpreter._executors[0].context, node)]
    feed(interpreter, values)
    return True


def _inputs(interpreter: Interpreter) -> list[Tensor]:
    subgraph = graph(interpreter)
    return [subgraph.tensors[index] for index in subgraph.inputs]


def _state(interpreter: Interpreter) -> list[Any]:
    return [
        ([(t.type.name, t.shape) for t in node.outputs], [(t.type.name, t.shape) for t in node.temporaries])
        for node in plan(interpreter)
    ]


def _arrays(interpreter: Interpreter) -> list[NDArray[Any]]:
    """The arrays that the graph's inputs and the nodes' outputs have now; objects among them cannot be spoilt."""
    tensors = [*_inputs(interpreter), *(t for node in plan(interpreter) for t in node.outputs)]
    return [t.data for t in tensors if t.has_data and t.data.flags.writeable and not t.data.dtype.hasobject]


def _make_constant(tensor: Tensor, value: NDArray[Any]) -> bool:
    """Let an input be what a constant of a model is; a string cannot."""
    if tensor.is_variable or tensor.shape != value.shape:
        return False
    # An array that owns its memory: a kernel that sets its flag to write again would succeed, and be found out.
    data = np.array(value, tensor.dtype)
    data.flags.writeable = False
    tensor.allocation = Allocation.COMPUTED
    tensor.set_memory(data)
    return True


def _kind(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {', '.join(sorted({type(each).__name__ for each in value})) or 'nothing'}"
    return "missing" if value is None else f"of the type {type(value).__name__}"


def identical(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays are the same, bit for bit."""
    if one.dtype.hasobject:
        return bool(np.array_equal(one, other))
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _growth(invoke: Callable[[], None]) -> int:
    """Bytes by which the second half of many runs exceeds the first, in what is left or in the most that was needed."""
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        first = _measure(invoke, _MANY)
        second = _measure(invoke, _MANY)
    finally:
        if ours:
            tracemalloc.stop()
    return max(second[0] - first[0], second[1] - first[1])


def _measure(invoke: Callable[[], None], count: int) -> tuple[int, int]:
    end = time.monotonic() + _PATIENCE
    for _ in range(count):
        invoke()
        if time.monotonic() > end:
            break
    gc.collect()
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    invoke()
    return left, tracemalloc.get_traced_memory()[1]
