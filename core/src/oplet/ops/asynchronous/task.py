"""One asynchronous execution: which buffers it works on, and how it went.

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
    """How a task's last execution went, with LiteRT's numbers."""

    OK = 0
    ERROR = 1


class Synchronization:
    """Carries a synchronization object, of whatever kind the kernel supports.

    Attributes:
        resource: the object. The application sets it for an input, the kernel for an output.
    """

    def __init__(self, resource: Any = None) -> None:
        self.resource = resource


class TaskRunner(Protocol):
    """What a task asks of the runner that made it."""

    def tensor_index(self, tensor: str | int, io: IoType | None = None) -> int:
        """The index of an input or output."""

    def check_handle(self, handle: int) -> None:
        """Refuse a handle under which no buffer is registered."""

    def wait(self, task: ExecutionTask) -> None:
        """Wait for the task's execution."""

    def finish(self, task: ExecutionTask) -> None:
        """Release the task."""


class _Execution:
    """One execution of a task. Whoever holds the lock is the one who asks the kernel how it went."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ended = False
        self.error: OpletError | None = None


class ExecutionTask:
    """Buffers for the model's inputs and outputs, and one execution on them at a time.

    Made by `AsyncSignatureRunner.create_task`, released by its `finish`; a `with` block does so at its end. In a
    coroutine, `await task` waits for the execution without blocking the event loop.

    Attributes:
        data: free for the kernel.
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
        """Say which buffer an input is read from or an output is written to.

        Args:
            tensor: its name in the signature, or its index.
            handle: what `register_buffer` or `register_buffer_slice` returned.
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
        """The handle that was set for an input or output; None if none was."""
        return self._buffers.get(self._runner.tensor_index(tensor, io))

    @property
    def buffers(self) -> dict[int, int]:
        """The handles that were set, by tensor index."""
        return dict(self._buffers)

    def set_synchronization(self, tensor: str | int, synchronization: Synchronization | None, io: IoType | None = None) -> None:
        """Say what an input waits for, or ask for an object that tells when an output is ready; arguments as for `set_buffer`.

        It counts only for tensors for which `set_attributes` chose a type of synchronization.
        """
        self._ensure_idle()
        self._synchronizations[self._runner.tensor_index(tensor, io)] = synchronization

    def synchronization(self, tensor: str | int, io: IoType | None = None) -> Synchronization | None:
        """What was set for an input or output; None if nothing was."""
        return self._synchronizations.get(self._runner.tensor_index(tensor, io))

    # How it goes ---------------------------------------------------------------------------------------------

    @property
    def scheduled(self) -> bool:
        """Whether an execution was started that nobody has waited for to its end."""
        execution = self._execution
        return execution is not None and not execution.ended

    @property
    def finished(self) -> bool:
        """Whether the task was released."""
        return self._finished

    @property
    def error(self) -> OpletError | None:
        """Why the last execution failed; None if it did not, or has not ended."""
        return self._execution.error if self._execution is not None else None

    @property
    def status(self) -> TaskStatus:
        """How the last execution went; OK while there is none or it has not ended."""
        return TaskStatus.OK if self.error is None else TaskStatus.ERROR

    def __await__(self) -> Generator[Any, None, None]:
        import asyncio

        return asyncio.get_running_loop().run_in_executor(None, self._runner.wait, self).__await__()

    def __enter__(self) -> ExecutionTask:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._finished:
            self._runner.finish(self)

    # What the runner does ------------------------------------------------------------------------------------

    def _ensure_idle(self) -> None:
        self._ensure_unfinished()
        if self.scheduled:
            raise StateError("The task has already been scheduled for execution. Wait for it before you change it.")

    def _ensure_unfinished(self) -> None:
        if self._finished:
            raise StateError("The task was finished already; create another one.")

    def _schedule(self, start: Callable[[], OpletError | None]) -> None:
        """Start an execution; `start` returns why it could not be started, or None."""
        execution = _Execution()
        with execution.lock:  # who waits already, waits for the start, too
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
        """Wait for the execution, if there is one, and return how it went.

        The first to come asks the kernel with `wait`; whoever comes meanwhile or later gets the same answer.
        """
        execution = self._execution
        if execution is None:
            return None
        with execution.lock:
            if not execution.ended:
                execution.error = wait()
                execution.ended = True
        return execution.error

    def _finish(self) -> None:
        """Mark the task as released."""
        with self._lock:
            self._ensure_unfinished()
            self._finished = True
