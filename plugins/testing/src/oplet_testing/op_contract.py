"""The contract of an op's kernel, as a class of tests to inherit from."""

from __future__ import annotations

import gc
import weakref
from typing import Any, ClassVar

from oplet import Model, OpResolver, PluginManager
from oplet.errors import ModelError, OpletError, OpNotFoundError, PrepareError, UnresolvedOpError
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.toolkit import ChainOpResolver, default_manager, op_label
from oplet_testing.contract import Contract
from oplet_testing.harness.assertions import check
from oplet_testing.harness.graph_access import plan, write_over
from oplet_testing.harness.runs import answers, run
from oplet_testing.harness.spies import INJECTED, SpyResolver

__all__ = ["OpContract", "first_failure"]

#: The checks that take longest, which `first_failure` runs last.
_LONGEST = ("test_two_interpreters_know_nothing_of_each_other", "test_many_runs_take_no_more_memory_than_few")


class OpContract(Contract):
    """Tests that every op must pass; see `Contract` for further attributes that a subclass may set.

    Attributes:
        max_version: the newest version of the op that the kernel serves; by default the newest that is registered.

    Examples:
        >>> import numpy as np
        >>> from oplet_testing import OpContract, Spec, one_op_model
        >>> class TestRelu(OpContract):
        ...     model = one_op_model("RELU", [Spec("float32", [4])], [Spec("float32", [4])])
        ...     inputs = [np.array([-1, 0, 1, 2], np.float32)]
    """

    max_version: ClassVar[int | None] = None

    def _resolver(self) -> OpResolver:
        manager = self.plugins
        if manager is None:
            manager = default_manager()
        elif not isinstance(manager, PluginManager):
            manager = PluginManager.named(manager, "plugins")
        return manager.resolver() if self.op_resolver is None else ChainOpResolver([self.op_resolver, manager.resolver()])

    def test_every_init_has_its_free(self) -> None:
        for trouble in ("", "unprepared", "prepare", "invoke", "free"):
            spy = SpyResolver(self._resolver(), trouble)
            try:
                with self.opened(op_resolver=spy) as interpreter:
                    if trouble != "unprepared":
                        run(interpreter, self.inputs)
            except OpletError as error:
                check(INJECTED in str(error), f"{_when(trouble)}, it fails in another place too: {error}")
            check(not spy.strays, f"{_when(trouble)}, free was called with what no init had returned")
            check(
                spy.inits == spy.frees and not spy.live,
                f"{_when(trouble)}, there were {spy.inits} calls of init and {spy.frees} of free",
            )

    def test_nothing_of_a_node_outlives_its_interpreter(self) -> None:
        with self.opened() as interpreter:
            run(interpreter, self.inputs)
            tensors = [t for node in plan(interpreter) for t in (*node.outputs, *node.temporaries)]
            kept = [_reference(t.data) for t in tensors if t.has_data]
            kept += [_reference(node.user_data) for node in plan(interpreter)]
        del interpreter, tensors
        gc.collect()
        for reference in kept:
            left = None if reference is None else reference()
            check(left is None, f"a {type(left).__name__} of the node is still held after the interpreter was closed")

    def test_an_input_that_it_offers_may_be_written_over(self) -> None:
        wanted = self.fresh(self.inputs)
        number = 0
        while True:
            with self.opened() as interpreter:
                if not write_over(interpreter, self.inputs, number):
                    return
                interpreter.invoke()
                self.same(answers(interpreter), wanted, "with its output in the place of an input that it offers")
            number += 1

    def test_types_that_it_cannot_compute_are_refused_before_it_runs(self) -> None:
        root = Model.from_bytes(self.model).root
        tensors = [tensor for subgraph in root.subgraphs or [] for tensor in subgraph.tensors or []]
        first = (root.subgraphs or [])[0].inputs
        if first is None or not len(first):
            return
        own = tensors[int(first[0])].type
        for other in (TensorType.FLOAT32, TensorType.INT32, TensorType.INT8, TensorType.BOOL, TensorType.COMPLEX64):
            if other is own:
                continue
            changed = Model.from_bytes(self.model).root
            for tensor in (changed.subgraphs or [])[0].tensors or []:
                if tensor.type is own and (changed.buffers or [])[tensor.buffer].data is None:
                    tensor.type, tensor.quantization = other, None
            self._must_run_or_refuse(Model(changed).to_bytes(), f"{other.name} in place of {own.name}")

    def test_operands_that_are_missing_are_refused_before_it_runs(self) -> None:
        first = (Model.from_bytes(self.model).root.subgraphs or [])[0].operators or []
        for kept in range(max((len(operator.inputs) for operator in first if operator.inputs is not None), default=0)):
            changed = Model.from_bytes(self.model).root
            for operator in (changed.subgraphs or [])[0].operators or []:
                if operator.inputs is not None:
                    operator.inputs = operator.inputs[:kept]
            self._must_run_or_refuse(Model(changed).to_bytes(), f"{kept} of its inputs")

    def _must_run_or_refuse(self, model: bytes, what: str) -> None:
        try:
            with self.opened(model_content=model) as interpreter:
                interpreter.allocate_tensors()
                try:
                    interpreter.invoke()
                except OpletError as error:
                    raise AssertionError(f"with {what}, it is prepared and fails when it runs: {error}") from error
        except PrepareError as error:
            check(isinstance(error.__cause__, OpletError), f"with {what}, it fails in place of refusing with `ensure`: {error}")
        except ModelError:
            return  # the verifier refused it before any kernel saw it

    def test_a_version_that_it_does_not_know_is_refused(self) -> None:
        root = Model.from_bytes(self.model).root
        resolver = self._resolver()
        for code in root.operator_codes or []:
            op = code.custom_code if code.builtin_code is BuiltinOperator.CUSTOM else code.builtin_code
            if op is None:
                continue
            newest = self.max_version or max(resolver.versions(op), default=0)
            check(newest, f"nothing serves {op_label(op)}")
            code.version = newest + 1
            self._must_refuse(Model(root).to_bytes(), f"{op_label(op)} in version {newest + 1}")
            return

    def _must_refuse(self, model: bytes, what: str) -> None:
        try:
            with self.opened(model_content=model) as interpreter:
                interpreter.allocate_tensors()
        except (OpNotFoundError, UnresolvedOpError):
            return
        raise AssertionError(f"a model that needs {what} is run, though the kernel knows no such version")


def _when(trouble: str) -> str:
    if trouble in ("", "unprepared"):
        return "without prepare" if trouble else "without any trouble"
    return f"where {trouble} raises"


def _reference(value: Any) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(value)
    except TypeError:
        return None  # numbers, strings and None take no weak references


def first_failure(contract: Contract) -> str:
    """Return the name of the first check of a contract that fails; "" if all pass.

    It serves tests that a contract detects a kernel that is wrong on purpose. The checks that take longest are run last.

    Examples:
        >>> import numpy as np
        >>> from oplet_testing import OpContract, Spec, first_failure, one_op_model
        >>> class Ceil(OpContract):
        ...     model = one_op_model("CEIL", [Spec("float32", [2])], [Spec("float32", [2])])
        ...     inputs = [np.array([0.5, -1.5], np.float32)]
        ...     reference = staticmethod(np.floor)
        >>> first_failure(Ceil())
        'test_the_answers_are_those_of_the_reference'
    """
    checks = sorted(name for name in dir(contract) if name.startswith("test_"))
    for name in sorted(checks, key=lambda name: name in _LONGEST):
        try:
            getattr(contract, name)()
        except Exception:  # the check's own words, or an error of the interpreter
            return name
    return ""
