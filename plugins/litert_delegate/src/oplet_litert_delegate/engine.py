"""A partition opened in LiteRT: allocated, with its tensors' memory viewed as numpy arrays."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from oplet import Node, Tensor
from oplet.errors import text_of
from oplet_litert_delegate.composites import untaken
from oplet_litert_delegate.library import Library
from oplet_litert_delegate.part import Part

__all__ = ["Engine", "Port", "RefusedError"]

#: LiteRT's complaints end so.
_WHERE = re.compile(r"\s*Node number (\d+) \([^()]*\) failed to \w+\.\s*$")


class RefusedError(Exception):
    """Raised when LiteRT rejects a partition.

    Attributes:
        node: the node that LiteRT's message names; None if it names none.
    """

    def __init__(self, reason: str, node: Node | None = None) -> None:
        super().__init__(reason)
        self.node = node


class Port(NamedTuple):
    """A tensor that crosses the partition's boundary, with its LiteRT memory.

    Attributes:
        tensor: oplet's tensor.
        number: LiteRT's index of the tensor.
        view: LiteRT's memory of the tensor as an array; None where LiteRT does not expose it, as for scalars.
    """

    tensor: Tensor
    number: int
    view: NDArray[Any] | None


class Engine:
    """A LiteRT interpreter for one partition.

    The interpreter is allocated once and never resized, so that array views of its memory stay valid; the views keep it alive.

    Attributes:
        part: the partition, written as a model.
        inputs: the partition's inputs.
        outputs: the tensors that are read from the partition.
        variables: the variable tensors, whose values LiteRT keeps from one run to the next.
        nbytes: an estimate of the interpreter's memory, in bytes.
    """

    def __init__(self, part: Part, num_threads: int, *, xnnpack: bool, nbytes: int = 0, library: Library | None = None) -> None:
        """Open and allocate a partition in LiteRT.

        Args:
            part: the partition, written as a model.
            num_threads: LiteRT's number of threads.
            xnnpack: whether LiteRT applies XNNPACK.
            nbytes: the estimated memory of the interpreter.
            library: a library whose delegate LiteRT applies before XNNPACK; None for none.

        Raises:
            RefusedError: LiteRT rejects the partition.
        """
        self.part = part
        self.nbytes = nbytes
        _check(part)
        try:
            self._interpreter = _opened(part, num_threads, xnnpack=xnnpack, library=library)
        except RefusedError as error:
            if not xnnpack:
                raise
            if part.composites:  # which LiteRT's own kernels take apart
                raise RefusedError(str(error), error.node or part.nodes[part.composites[0]]) from error
            # LiteRT's own kernels take more than XNNPACK does.
            self._interpreter = _opened(part, num_threads, xnnpack=False, library=library)
        _check_composites(part, self._interpreter)
        details = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        self.inputs, self.outputs = (
            [self._port(detail["index"], tensor) for detail, tensor in zip(side, tensors)]
            for side, tensors in zip(details, (part.inputs, part.outputs))
        )
        self.variables = [self._port(index, tensor) for index, tensor in part.variables.items()]

    @property
    def run(self) -> Callable[[], None]:
        """The `invoke` method of the LiteRT interpreter."""
        run: Callable[[], None] = self._interpreter.invoke
        return run

    def explained(self, error: Exception) -> str:
        """Return the error message for an exception that `run` raised, with the failing node's number in the original model."""
        reason, node = _complaint(self.part, error)
        return f"LiteRT says: {reason}" + ("" if node is None else f" (in {node})")

    @property
    def get(self) -> Callable[[int], Any]:
        """The `get_tensor` method of the LiteRT interpreter: returns a copy of the tensor with the given LiteRT index."""
        get: Callable[[int], Any] = self._interpreter.get_tensor
        return get

    @property
    def set(self) -> Callable[[int, NDArray[Any]], None]:
        """The `set_tensor` method of the LiteRT interpreter: sets the value of the tensor with the given LiteRT index."""
        set_tensor: Callable[[int, NDArray[Any]], None] = self._interpreter.set_tensor
        return set_tensor

    def _port(self, index: int, tensor: Tensor) -> Port:
        """Return the port of a tensor, with an array view of LiteRT's memory.

        LiteRT does not run as long as arrays live that it has handed out; so the view is made from the memory's address.
        """
        shown = _memory(self._interpreter, index)
        if shown is None:
            raise RefusedError(f"LiteRT has no memory for {tensor} before it runs")
        if shown.dtype != tensor.dtype or shown.shape != tensor.shape:
            raise RefusedError(f"LiteRT makes {shown.dtype} {list(shown.shape)} of {tensor}")
        if not shown.ndim or not shown.size:
            return Port(tensor, index, None if shown.size else np.empty(tensor.shape, tensor.dtype))
        block = (ctypes.c_byte * shown.nbytes).from_address(shown.ctypes.data)
        block.owner = self._interpreter  # type: ignore[attr-defined]
        return Port(tensor, index, np.frombuffer(memoryview(block), tensor.dtype).reshape(tensor.shape))


def _check(part: Part) -> None:
    """Prepare the partition with LiteRT's own kernels first, whose error messages are specific, before XNNPACK sees it."""
    interpreter = _opened(part, 1, xnnpack=False)
    for number, node in enumerate(part.nodes):
        indices = interpreter._get_op_details(number)["outputs"]
        for index, tensor in zip(indices, () if node is None else node.outputs):
            shown = _memory(interpreter, index)
            if shown is None:
                raise RefusedError(f"LiteRT knows the shape of {tensor} only while running", node)
            if shown.shape != tensor.shape:
                raise RefusedError(f"LiteRT gives {tensor} the shape {list(shown.shape)}", node)


def _check_composites(part: Part, interpreter: Interpreter) -> None:
    """Check that XNNPACK took every composite."""
    if part.composites:
        outputs = [detail["index"] for detail in interpreter.get_output_details()]
        for number in untaken(interpreter._get_ops_details(), outputs, part.composites):
            raise RefusedError("XNNPACK leaves the composite to LiteRT, whose decomposition may differ", part.nodes[number])


def _opened(part: Part, num_threads: int, *, xnnpack: bool, library: Library | None = None) -> Interpreter:
    kind = OpResolverType.BUILTIN if xnnpack else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        interpreter = Interpreter(
            model_content=part.content,
            num_threads=num_threads,
            experimental_op_resolver_type=kind,
            experimental_delegates=None if library is None else [library.delegate()],
        )
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        reason, node = _complaint(part, error)
        raise RefusedError(f"LiteRT refuses it: {reason}", node) from error
    return interpreter


def _complaint(part: Part, error: Exception) -> tuple[str, Node | None]:
    """Return LiteRT's error message, and the node that it names by its number in the partition, if any."""
    text = text_of(error)
    found = _WHERE.search(text)
    number = int(found[1]) if found else len(part.nodes)
    node = part.nodes[number] if number < len(part.nodes) else None  # XNNPACK's own nodes come behind
    return " ".join(_WHERE.sub("", text).split()) or "it does not say why", node


def _memory(interpreter: Interpreter, index: int) -> NDArray[Any] | None:
    """Return LiteRT's array view of a tensor (a copy of a scalar); None if it has no memory yet."""
    try:
        return np.asarray(interpreter.tensor(index)())
    except ValueError:
        return None
