"""Tasks of asynchronous execution: their buffers, synchronization objects and status.

Contract: tflite/core/async/c/task.h and task_internal.h of google-ai-edge/LiteRT.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, Protocol

from oplet.errors import OpletError, StateError

__all__ = ["ExecutionTask", "IoType", "Synchronization", "TaskRunner", "TaskStatus"]


class IoType(Enum):
    """Whether a tensor is an input or an output of the model, with LiteRT's numbers."""

    INPUT = 1
    OUTPUT = 2


class TaskStatus(Enum):
    """Status of a task's last execution, with LiteRT's numbers."""

    OK = 0
    ERROR = 1


class Synchronization:
    """Holder of a synchronization object, of any type that the kernel supports.

    Attributes:
        resource: the object. The application sets it for an input, the kernel for an output.
    """

    def __init__(self, resource: Any = None) -> None:
        self.resource = resource


class TaskRunner(Protocol):
    """The methods of the asynchronous runner that tasks call."""

    def tensor_index(self, tensor: str | int, io: IoType | None = None) -> int:
        """Return the index of an input or output."""

    def check_handle(self, handle: int) -> None:
        """Raise TensorError if no buffer is registered under the handle."""

    def wait(self, task: ExecutionTask) -> None:
        """Wait for the task's current execution to end."""

    def finish(self, task: ExecutionTask) -> None:
        """Release the task and its resources."""


class _Execution:
    """One execution of a task. Of the threads that wait, the one that holds the lock asks the kernel for the result."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ended = False
        self.error: OpletError | None = None


class ExecutionTask:
    """The buffers of the model's inputs and outputs for asynchronous execution; one execution at a time.

    `AsyncSignatureRunner.create_task` creates it and `finish` releases it, as the end of a `with` block does. In a coroutine,
    `await task` waits for the execution without blocking the event loop.

    Attributes:
        data: whatever the asynchronous kernel keeps for the task.
    """

    def __init__(self, runner: TaskRunner) -> None:
        self.data: Any = None
        self._runner = runner
        self._buffers: dict[int, int] = {}
        self._synchronizations: dict[int, Synchronization | None] = {}
        self._lock = threading.Lock()
        self._execution: _Execution | None = None
        self._finished = False

    # Buffers -------------------------------------------------------------------------------------------------

    def set_buffer(self, tensor: str | int, handle: int, io: IoType | None = None) -> None:
        """Set the buffer from which an input is read or to which an output is written.

        Args:
            tensor: the tensor's name in the signature, or its index.
            handle: the handle that `register_buffer` or `register_buffer_slice` returned.
            io: needed only if an input and an output have the same name.

        Raises:
            SignatureError: there is no such input or output (a ValueError).
            TensorError: no buffer is registered under the handle (a ValueError).
            StateError: the task is being executed or was finished (a RuntimeError).
        """
        self._ensure_idle()
        index = self._runner.tensor_index(tensor, io)
        self._runner.check_handle(handle)
        self._buffers[index] = handle

    def buffer(self, tensor: str | int, io: IoType | None = None) -> int | None:
        """Return the handle of the buffer of an input or output; None if none was set."""
        return self._buffers.get(self._runner.tensor_index(tensor, io))

    @property
    def buffers(self) -> dict[int, int]:
        """The handles of all buffers that were set, by tensor index."""
        return dict(self._buffers)

    def set_synchronization(self, tensor: str | int, synchronization: Synchronization | None, io: IoType | None = None) -> None:
        """Set the object that an input (by name or index) waits for, or request one that signals when an output is ready.

        It has an effect only for tensors for which `set_attributes` chose a type of synchronization object.
        """
        self._ensure_idle()
        self._synchronizations[self._runner.tensor_index(tensor, io)] = synchronization

    def synchronization(self, tensor: str | int, io: IoType | None = None) -> Synchronization | None:
        """Return the synchronization object that was set for an input or output; None if none was."""
        return self._synchronizations.get(self._runner.tensor_index(tensor, io))

    # Status --------------------------------------------------------------------------------------------------

    @property
    def scheduled(self) -> bool:
        """Whether an execution was started that `wait` was not called for yet."""
        execution = self._execution
        return execution is not None and not execution.ended

    @property
    def finished(self) -> bool:
        """Whether the task was released."""
        return self._finished

    @property
    def error(self) -> OpletError | None:
        """The error of the last execution; None if it succeeded or has not ended."""
        return self._execution.error if self._execution is not None else None

    @property
    def status(self) -> TaskStatus:
        """The status of the last execution; OK before the first one and until it ends."""
        return TaskStatus.OK if self.error is None else TaskStatus.ERROR

    def __await__(self) -> Generator[Any, None, None]:
        import asyncio

        return asyncio.get_running_loop().run_in_executor(None, self._runner.wait, self).__await__()

    def __enter__(self) -> ExecutionTask:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._finished:
            self._runner.finish(self)

    # For the runner ------------------------------------------------------------------------------------------

    def _ensure_idle(self) -> None:
        self._ensure_unfinished()
        if self.scheduled:
            raise StateError("The task has already been scheduled for execution. Wait for it before you change it.")

    def _ensure_unfinished(self) -> None:
        if self._finished:
            raise StateError("The task was finished already; create another one.")

    def _schedule(self, start: Callable[[], OpletError | None]) -> None:
        """Start an execution; `start` returns the error if it could not be started, else None."""
        execution = _Execution()
        with execution.lock:  # threads that wait already also wait for the start
            with self._lock:
                self._ensure_unfinished()
                if self.scheduled:
                    raise StateError("The task has already been scheduled for execution.")
                self._execution = execution
            try:
                execution.error = start()
            except BaseException:
                execution.ended = True
                raise
            if execution.error is not None:
                execution.ended = True
                raise copy.copy(execution.error) from execution.error.__cause__

    def _settle(self, wait: Callable[[], OpletError | None]) -> OpletError | None:
        """Wait for the execution, if there is one, and return its error or None.

        The first thread asks the kernel with `wait`; all others get the same result.
        """
        execution = self._execution
        if execution is None:
            return None
        with execution.lock:
            if not execution.ended:
                execution.error = wait()
                execution.ended = True
        return execution.error

    def _mark_finished(self) -> None:
        """Mark the task as released."""
        with self._lock:
            self._ensure_unfinished()
            self._finished = True
