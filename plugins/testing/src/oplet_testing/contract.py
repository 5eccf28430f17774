"""The rules that ops and delegates share, as a class of tests to inherit from: `OpContract` and `DelegateContract` are the two to use.

Each check opens interpreters of its own, and fails with an AssertionError that says which rule was broken.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter, OpResolver, PluginManager
from oplet.errors import OpletError, PluginError, PrepareError
from oplet.toolkit import EnsureError
from oplet_testing.harness.assertions import check, identical, type_described
from oplet_testing.harness.graph_access import (
    graph_inputs,
    keep_plan,
    make_constant,
    node_state,
    plan,
    prepare_again,
    replace_memory,
    writeable_arrays,
)
from oplet_testing.harness.memory_growth import RUNS, memory_growth
from oplet_testing.harness.memory_poisoning import POISON_BYTES, poison_array, poison_memory
from oplet_testing.harness.runs import Values, allocate, answers, feed, run

__all__ = ["Contract", "Values", "check"]

#: Bytes of growth that are no leak: Python's own allocations are not exact to the byte.
_SLACK = 2048
#: Seconds that two threads run side by side, and the fewest runs of each.
_RACE, _LEAST_RUNS = 0.25, 3


class Contract:
    """The tests that ops and delegates share. A subclass sets `model` and `inputs`, and may set the other attributes.

    Attributes:
        model: the bytes of a model in which the op or delegate under test runs.
        inputs: one array per input of the model, with the dtypes of the model.
        other_inputs: other values of the same shapes; by default `inputs` with the order of their elements reversed.
        resized: values of other shapes than `inputs`; by default `inputs` repeated along the first axis. () if the shapes cannot change.
        empty: values with a dimension of 0; by default `inputs` without their rows. () if the model takes no such values.
        refuses_empty: whether `prepare` refuses the values of `empty` with `ensure`; otherwise they are run.
        stateful: whether an answer depends on earlier runs; checks then compare only runs of new interpreters.
        reference: a function of the inputs that returns the expected output, or a list of outputs; None without one. It is called with
            `inputs`, `other_inputs`, `resized` and `empty`.
        rtol: relative tolerance between two outputs of the same kernel on equal inputs.
        atol: absolute tolerance between such outputs.
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
        """Yield a new interpreter of the model, which is closed at the end; the arguments are passed on to its constructor."""
        self._check_attributes()
        given = {"model_content": self.model, "op_resolver": self.op_resolver, "plugins": self.plugins, **arguments}
        interpreter = keep_plan(Interpreter(**given))
        try:
            yield interpreter
        finally:
            interpreter.close()

    def _check_attributes(self) -> None:
        name = type(self).__name__
        model = getattr(self, "model", None)
        check(
            isinstance(model, (bytes, bytearray)),
            f"{name}.model is {type_described(model)}; give it the bytes of a model, as one_op_model returns",
        )
        for attribute in ("inputs", "other_inputs", "resized", "empty"):
            values = getattr(self, attribute, None)
            if values is None and attribute != "inputs":
                continue
            fits = isinstance(values, (list, tuple)) and all(isinstance(value, np.ndarray) for value in values)
            check(
                fits,
                f"{name}.{attribute} is {type_described(values)}; give it a list with a numpy array for each input of the model",
            )

    def fresh(self, values: Values) -> list[NDArray[Any]]:
        """Return the outputs that a new interpreter of the model gives on these inputs."""
        with self.opened() as interpreter:
            return run(interpreter, values)

    def same(self, got: Values, wanted: Values, rule: str) -> None:
        """Compare two lists of outputs: dtypes and shapes, floats within `rtol` and `atol`, and all other values exactly.

        Raises:
            AssertionError: the outputs differ; the message begins with `rule`, a sentence that says which rule is broken.
        """
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
            before = node_state(interpreter)
            for _ in range(2):
                prepare_again(interpreter)
            after = node_state(interpreter)
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
            stale = writeable_arrays(interpreter)
            if self._resized():
                run(interpreter, self._resized())
            replace_memory(interpreter)
            run(interpreter, self.inputs)
            for array in stale:
                poison_array(array, POISON_BYTES[0])
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
        for byte in POISON_BYTES:
            with self.opened() as interpreter:
                allocate(interpreter, self.inputs)
                poison_memory(interpreter, byte)
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
                outputs = [t for node in plan(interpreter) for t in node.outputs if not t.is_dynamic]  # valid after `prepare`
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
            constants = [copy for copy, tensor in zip(self.inputs, graph_inputs(interpreter)) if make_constant(tensor, copy)]
            interpreter.subgraphs[0].invalidate()
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
            end, runs = time.monotonic() + _RACE, 0
            try:
                while (runs < _LEAST_RUNS or time.monotonic() < end) and not failures:
                    runs += 1
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
            for _ in range(8):  # other threads of the process allocate too, and more of them on a busy machine
                growth = memory_growth(interpreter.invoke)
                if growth < _SLACK:
                    return
            raise AssertionError(f"it takes {growth} bytes more with each {RUNS} runs")
