"""A small model in LiteRT: opened, allocated, its memory seen as numpy arrays."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from oplet import Node, Tensor
from oplet_litert_delegate.part import Part

__all__ = ["Engine", "RefusedError", "check_part"]

Shape = tuple[int, ...]

#: LiteRT's complaints end so.
_WHERE = re.compile(r"\s*Node number (\d+) \([^()]*\) failed to \w+\.\s*$")


class RefusedError(Exception):
    """LiteRT does not take the part.

    Attributes:
        node: the node that it complains about, None if it does not say.
    """

    def __init__(self, reason: str, node: Node | None = None) -> None:
        super().__init__(reason)
        self.node = node


def check_part(part: Part) -> None:
    """Have LiteRT's own kernels, which say what they miss, prepare the part before XNNPACK sees it.

    Raises:
        RefusedError: they do not take it, or give a tensor another shape than it has in the graph.
    """
    try:
        interpreter = _open(part.content, 1, xnnpack=False)
    except ValueError as error:
        raise _refusal(error, part) from error
    try:
        interpreter.allocate_tensors()
    except RuntimeError as error:
        raise _refusal(error, part) from error
    details = {detail["index"]: detail for detail in interpreter.get_tensor_details()}
    for number, node in enumerate(part.nodes):
        for index, tensor in zip(interpreter._get_op_details(number)["outputs"], () if node is None else node.outputs):
            if _address(interpreter, index) is None:
                raise RefusedError(f"LiteRT knows the shape of {tensor} only while running", node)
            shape = tuple(details[index]["shape"].tolist())
            if shape != tensor.shape:
                raise RefusedError(f"LiteRT gives {tensor} the shape {list(shape)}", node)


class Engine:
    """An interpreter of LiteRT for one part, allocated.

    Attributes:
        part: what it runs.
        xnnpack: whether XNNPACK may run of it what it can.
    """

    def __init__(self, part: Part, num_threads: int, *, xnnpack: bool) -> None:
        """
        Raises:
            RefusedError: LiteRT does not take the part.
        """
        self.part = part
        self.xnnpack = xnnpack
        self._num_threads = num_threads
        self._shapes = [tensor.shape for tensor in part.inputs]
        self._start()

    def resize(self, shapes: Sequence[Shape]) -> None:
        """Give the inputs these shapes.

        Raises:
            RefusedError: LiteRT does not take them.
        """
        if list(shapes) == self._shapes:
            return
        self._shapes = list(shapes)
        try:
            self._allocate()
        except RuntimeError:
            self._start()  # the failure left it in pieces

    @property
    def output_shapes(self) -> list[Shape]:
        """The shapes of the outputs."""
        return [tuple(detail["shape"].tolist()) for detail in self._interpreter.get_output_details()]

    def inputs(self) -> list[NDArray[Any]]:
        """LiteRT's memory of the inputs, good until the next resize."""
        return self._views(self._interpreter.get_input_details(), self.part.inputs)

    def outputs(self) -> list[NDArray[Any]]:
        """LiteRT's memory of the outputs, good until the next resize."""
        return self._views(self._interpreter.get_output_details(), self.part.outputs)

    @property
    def run(self) -> Callable[[], None]:
        """What runs it; good until the next resize."""
        run: Callable[[], None] = self._interpreter.invoke
        return run

    def _start(self) -> None:
        try:
            try:
                self._interpreter = _open(self.part.content, self._num_threads, xnnpack=self.xnnpack)
                self._allocate()
            except RuntimeError:
                if not self.xnnpack:
                    raise
                self.xnnpack = False  # LiteRT's own kernels take more than XNNPACK does
                self._interpreter = _open(self.part.content, self._num_threads, xnnpack=False)
                self._allocate()
        except (RuntimeError, ValueError) as error:
            raise _refusal(error, self.part) from error

    def _allocate(self) -> None:
        for detail, shape in zip(self._interpreter.get_input_details(), self._shapes):
            if tuple(detail["shape"].tolist()) != shape:
                self._interpreter.resize_tensor_input(detail["index"], shape)
        self._interpreter.allocate_tensors()

    def _views(self, details: Sequence[dict[str, Any]], tensors: Sequence[Tensor]) -> list[NDArray[Any]]:
        return [_view(self._interpreter, detail, tensor) for detail, tensor in zip(details, tensors)]


def _open(content: bytes, num_threads: int, *, xnnpack: bool) -> Interpreter:
    kind = OpResolverType.BUILTIN if xnnpack else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return Interpreter(model_content=content, num_threads=num_threads, experimental_op_resolver_type=kind)


def _address(interpreter: Interpreter, index: int) -> int | None:
    """Where LiteRT has a tensor's values; None if it has no memory yet."""
    try:
        address: int = interpreter.tensor(index)().ctypes.data
    except ValueError:
        return None
    return address


def _view(interpreter: Interpreter, detail: dict[str, Any], tensor: Tensor) -> NDArray[Any]:
    """An array over a tensor's memory.

    The arrays that LiteRT hands out keep it from running as long as they live; one that is made from the address does not.
    It must not outlive the interpreter, nor its next resize.
    """
    shape = tuple(detail["shape"].tolist())
    nbytes = tensor.dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if not nbytes:
        return np.empty(shape, tensor.dtype)
    address = _address(interpreter, detail["index"])
    if address is None:
        raise RefusedError(f"LiteRT has no memory for {tensor} before it runs")
    return np.frombuffer((ctypes.c_byte * nbytes).from_address(address), tensor.dtype).reshape(shape)


def _refusal(error: Exception, part: Part) -> RefusedError:
    """LiteRT's own words, and the node that they are about if they name one."""
    text = str(error).strip()
    found = _WHERE.search(text)
    number = int(found[1]) if found else len(part.nodes)
    reason = (_WHERE.sub("", text) if found else text) or "it gives no reason"
    return RefusedError(f"LiteRT refuses it: {' '.join(reason.split())}", part.nodes[number] if number < len(part.nodes) else None)
