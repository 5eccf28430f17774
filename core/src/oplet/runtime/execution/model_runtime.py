"""The runtime of a model, which an interpreter holds: it loads, resizes, feeds, runs and reads the model's subgraphs, each by its index."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from oplet.collector import collecting_rarely
from oplet.errors import LimitError, OpletError, PrepareError, StateError, TensorError, UnservedNodeError, failures, text_of
from oplet.ops.context import EnsureError
from oplet.runtime.blas import KernelNumpySettings
from oplet.runtime.memory.arrays import Views
from oplet.runtime.memory.values import as_tensor_value, ensure_readable
from oplet.runtime.subgraph import find_subgraph, find_tensor
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet.delegates.delegate import Delegate
    from oplet.ops.tensor import Tensor
    from oplet.runtime.execution.executor import Executor
    from oplet.runtime.execution.loaded_model import LoadedModel
    from oplet.runtime.execution.session import Backend
    from oplet.runtime.subgraph import Subgraph

__all__ = ["Delegates", "HoldsRuntime", "ModelRuntime"]


class Delegates(Protocol):
    """Protocol: applies delegates to a model's subgraphs, whose executors are passed to each method."""

    def apply(self, executors: Sequence[Executor], delegate: Delegate, subgraphs: Collection[int] | None = None) -> None:
        """Apply a delegate to the subgraphs of these indices; None for all."""

    def remove(self) -> None:
        """Remove all delegates."""

    def missing(self, ops: Iterable[str]) -> Sequence[Delegate]:
        """Return new delegates for custom ops without a kernel, where packages have some that are not applied."""

    def put_first(self, executors: Sequence[Executor], delegates: Iterable[Delegate]) -> None:
        """Apply these delegates, and then once more those that are applied already."""


class HoldsRuntime(Protocol):
    """Protocol of an interpreter for its signature runners: an object with a model runtime as attribute."""

    @property
    def _runtime(self) -> ModelRuntime: ...


class ModelRuntime:
    """Runs a model's subgraphs, each by its index.

    Args:
        loaded: the model, whose subgraphs it loads.
        delegates: returns what applies delegates to it; it is called when the first one is to be applied.

    Attributes:
        loaded: the model with its subgraphs and executors.
        session: the state that its subgraphs share.
        model: the model as the file has it.
        subgraphs: its subgraphs, by index.
        executors: the executor of each subgraph, which runs it.
        views: the numpy views of tensors that the program has.
        backends: by the index of a subgraph, its asynchronous runner.
        copies_outputs: whether `invoke` copies outputs that a delegate has left in its buffers; otherwise reading copies them.

    Raises:
        OpletError: a built-in operator has no kernel, or cannot be initialized.
    """

    def __init__(self, loaded: LoadedModel, delegates: Callable[[], Delegates]) -> None:
        self.loaded = loaded
        self.session = loaded.session
        self.subgraphs = loaded.subgraphs
        self.executors = loaded.executors
        self.views = Views()
        self.backends: dict[int, Backend] = {}
        self.copies_outputs = True
        self.model = loaded.session.model
        self._make_delegates = delegates
        self._delegates: Delegates | None = None
        self._closed = False
        try:
            loaded.load()
        except OpletError:
            self.close()
            raise

    # Look-ups ------------------------------------------------------------------------------------------------

    def subgraph(self, index: int) -> Subgraph:
        """Return a subgraph.

        Raises:
            TensorError: there is no subgraph of this index.
        """
        return find_subgraph(self.subgraphs, index)

    def tensor(self, index: int, subgraph_index: int) -> Tensor:
        """Return a tensor of a subgraph.

        Raises:
            TensorError: there is no tensor of these indices.
        """
        return find_tensor(self.subgraphs, index, subgraph_index)

    # Allocating ----------------------------------------------------------------------------------------------

    def allocate(self, subgraph_index: int) -> None:
        """Prepare a subgraph for its inputs' shapes and give its tensors memory; nothing happens if it is ready."""
        self.ensure_idle()
        subgraph = find_subgraph(self.subgraphs, subgraph_index)
        if not subgraph.ready:
            self.ensure_open()
            self.model.check_files()
            if self.loaded.adopt_plan():
                return
            from oplet.runtime.resolving import running_nodes, unresolved, unserved_custom_ops, unserved_op

            ops = unserved_custom_ops(self.subgraphs, subgraph_index)
            if ops and self._serve(ops):
                ops = unserved_custom_ops(self.subgraphs, subgraph_index)
            if ops:
                nodes = running_nodes(self.subgraphs, subgraph_index)
                raise unresolved(nodes, self.subgraphs, self.session.resolver, self.loaded.manager.advice, self.model.name)
            try:
                self._allocate_runner(subgraph_index)
            except UnservedNodeError as error:
                if not self._serve([unserved_op(error)]):
                    raise
                self._allocate_runner(subgraph_index)

    @collecting_rarely
    def _allocate_runner(self, subgraph_index: int) -> None:
        with KernelNumpySettings():
            self.session.runners[subgraph_index].allocate()

    # Delegates -----------------------------------------------------------------------------------------------

    def apply_delegate(self, delegate: Delegate, subgraphs: Collection[int] | None) -> None:
        """Apply a delegate to the subgraphs of these indices; None for all.

        Raises:
            DelegateApplicationError: the delegate is incompatible with the graph or with delegates applied before; the graph is usable.
            DelegateError: the delegate failed; the graph is the model's, without any delegate.
            ViewError: a numpy view of a tensor is still alive.
        """
        self._ensure_changeable()
        with KernelNumpySettings():
            self.loaded.part()
            self._made_delegates().apply(self.executors, delegate, subgraphs)

    def remove_delegates(self) -> None:
        """Remove all delegates: the model's own nodes run again, on the inputs that were set."""
        self._ensure_changeable()
        if self._delegates is not None:
            with KernelNumpySettings():
                self._delegates.remove()

    def _serve(self, ops: Iterable[str]) -> bool:
        """Apply the installed delegates that serve these custom ops, which have no kernel; return False if all of them are applied already."""
        if missing := self._made_delegates().missing(ops):
            self._ensure_changeable()
            with KernelNumpySettings():
                self.loaded.part()
                self._made_delegates().put_first(self.executors, missing)
        return bool(missing)

    def _made_delegates(self) -> Delegates:
        if self._delegates is None:
            self._delegates = self._make_delegates()
        return self._delegates

    def _ensure_changeable(self) -> None:
        self.views.ensure_none()
        self.ensure_idle()
        self.model.check_files()

    # Running -------------------------------------------------------------------------------------------------

    def invoke(self, subgraph_index: int) -> None:
        """Run a subgraph on the inputs that were set."""
        self.model.check_files()
        # No call of numpy would notice the settings.
        if not self.backends and 0 <= subgraph_index < len(self.executors) and self.executors[subgraph_index].invoke_joined():
            return
        subgraph = find_subgraph(self.subgraphs, subgraph_index)
        self.ensure_idle()
        with KernelNumpySettings():
            self.session.runners[subgraph_index].invoke()
            self.loaded.store_plan()
            if subgraph.delegated.reports and self.copies_outputs:
                for index in subgraph.read:
                    ensure_readable(self.executors[subgraph_index].context, subgraph.tensors[index])

    def exchange_memory(self, arrays: Mapping[int, NDArray[Any] | None], subgraph_index: int) -> set[int]:
        """Use the application's arrays as memory of a subgraph's inputs and outputs; see `SubgraphRunner.use_memory`."""
        from oplet.runtime.execution.binding import exchange_memory  # imported late: most programs copy inputs and outputs

        self.ensure_idle()
        find_subgraph(self.subgraphs, subgraph_index)
        with KernelNumpySettings():
            self.loaded.part()  # no other interpreter may take over memory of the application
            executor = self.executors[subgraph_index]
            return exchange_memory(executor.context, executor.exchanged, arrays)

    def resize(self, tensor_index: int, shape: tuple[int, ...], subgraph_index: int) -> None:
        """Give an input of a subgraph another shape."""
        self.ensure_idle()
        find_subgraph(self.subgraphs, subgraph_index)
        try:
            self.session.runners[subgraph_index].resize_input(tensor_index, shape)
        except EnsureError as error:
            raise PrepareError(str(error)) from error

    def feed(self, values: Sequence[tuple[int, Any]], subgraph_index: int) -> None:
        """Resize inputs of a subgraph to the shapes of these values (index, value), allocate, and copy the values into them."""
        self.ensure_idle()
        for index, value in values:
            tensor = find_tensor(self.subgraphs, index, subgraph_index)
            if value.__class__ is not np.ndarray or value.shape != tensor.shape or tensor.is_constant:
                self.resize(index, np.shape(value), subgraph_index)
        self.allocate(subgraph_index)
        subgraph = self.subgraphs[subgraph_index]
        for index, value in values:
            _write(subgraph, subgraph.tensors[index], value)

    def set_value(self, tensor_index: int, value: Any, subgraph_index: int) -> None:
        """Copy a value into a tensor."""
        self.session.ensure_unlocked()
        _write(self.subgraphs[subgraph_index], find_tensor(self.subgraphs, tensor_index, subgraph_index), value)

    def value(self, tensor_index: int, subgraph_index: int) -> NDArray[Any]:
        """Return a copy of a tensor's value; see `Interpreter.get_tensor`."""
        self.session.ensure_unlocked()
        tensor = find_tensor(self.subgraphs, tensor_index, subgraph_index)
        subgraph = self.subgraphs[subgraph_index]
        computed = not subgraph.absorption.has_no(tensor)
        if computed:
            self.readable(tensor_index, subgraph_index)
        if not computed or not subgraph.still_holds(tensor):
            raise TensorError(
                f"Tensor data is null. The memory of {tensor} was given to another tensor after the last node that reads it, or it has none. "
                "Construct the interpreter with experimental_preserve_all_tensors=True to read intermediate tensors."
            )
        try:
            value = np.array(tensor.data)
        except MemoryError as error:
            raise LimitError(f"There is not enough memory for a copy of {tensor} of {self.model.name}: {error}.") from error
        return value if value.ndim or value.dtype.hasobject else value[()]

    def readable(self, index: int, subgraph_index: int) -> Tensor:
        """Return a tensor whose `data` is up to date: copied from a delegate's buffer, if the value there is newer."""
        tensor = find_tensor(self.subgraphs, index, subgraph_index)
        if not tensor.has_data:
            raise TensorError(f"Tensor data is null. Run allocate_tensors() first; {tensor} has no memory yet.")
        self.model.check_files()
        if tensor.data_is_stale:
            ensure_readable(self.executors[subgraph_index].context, tensor)
        return tensor

    def reset_variables(self) -> None:
        """Set all variable tensors to zero."""
        self.session.ensure_unlocked()
        for subgraph in self.subgraphs:
            subgraph.reset_variables()

    def release_memory(self) -> None:
        """Release the memory of all tensors but constants and variables; `allocate` allocates it again."""
        self.views.ensure_none()
        self.ensure_idle()
        for executor in self.executors:
            executor.release()

    def ensure_open(self) -> None:
        """Raise a StateError if the interpreter was closed."""
        if self._closed:
            raise StateError(f"The interpreter of {self.model.name} was closed and cannot run any more; make another one.")

    def ensure_idle(self) -> None:
        """Check that no other thread is using the interpreter, and no asynchronous task is in flight."""
        self.session.ensure_unlocked()
        for backend in self.backends.values():
            backend.ensure_idle()

    def close(self) -> None:
        """Free the kernels' state and the tensors' memory, and end the threads; nothing can run afterwards."""
        if self.executors:
            self.session.ensure_unlocked()
        self._closed = True
        try:
            while self.backends:
                self.backends.popitem()[1].close()
        finally:
            failure: OpletError | None = None
            for executor in self.executors:
                try:
                    executor.close()
                except OpletError as error:  # the other executors still have to be closed
                    failure = failure or error
            if self.executors:
                self.session.end_workers()
                self.session.resources.clear()
            if failure is not None:
                raise failure

    def __del__(self) -> None:
        try:
            try:
                if self._closed or self.views.any_alive() or not self.loaded.leave_plan():
                    self.close()
            finally:
                if self.executors:
                    self.session.drop_references()
        except failures() as error:  # Python ignores what a destructor raises
            warnings.warn(text_of(error), ResourceWarning, stacklevel=1)


def _write(subgraph: Subgraph, tensor: Tensor, value: Any) -> None:
    """Copy a value into a tensor."""
    array = as_tensor_value(tensor, value)
    if subgraph.absorption.has_no(tensor) or not (array.size or tensor.is_constant):
        return  # as where it has memory: it is computed before anything reads it, or has no elements
    if tensor.type is TensorType.STRING and not tensor.has_data and tensor.index in subgraph.inputs:
        tensor.set_memory(np.empty(tensor.shape, object))  # as LiteRT, which allocates texts when they are given
    # After a refused resize, a tensor may have a new shape and the memory of before.
    if not tensor.has_data or tensor.data.shape != array.shape:
        raise TensorError("Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first")
    if tensor.is_constant:
        raise TensorError(f"Cannot set tensor: {tensor} is a constant.")
    tensor.data[...] = array
    tensor.data_is_stale = False
