"""RANDOM_UNIFORM (in [0, 1)) and RANDOM_STANDARD_NORMAL, and shared parts of nodes that draw random numbers: seeds, shapes, generators.

A node's stream restarts when the node is prepared or its subgraph is called, and otherwise continues from invoke to invoke, as in
tflite/kernels/random_ops.cc. Without seeds it starts at a position from the operating system's entropy.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import NDArray

from oplet import Context, Node, Registration, Tensor, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import RandomOptions
from oplet_builtin_ops.control.philox import Draw, PhiloxRandom, Words, normal_floats, uniform_floats

__all__ = ["Stream"]

#: The types of a tensor that has the shape of the numbers to draw.
SHAPES = (TensorType.INT32,)

#: The numbers that are drawn at a time, whole blocks of four: drawing one takes the memory of a dozen.
_PART = 1 << 18


def _as_int32(seed: int) -> int:
    """Return the low 32 bits of a seed as a signed integer, as LiteRT stores it."""
    return (seed + 2**31) % 2**32 - 2**31


class Stream:
    """The random generator of one node, whose state is kept between invokes."""

    def __init__(self, context: Context, node: Node) -> None:
        self._context = context
        self._options = node.options(RandomOptions)
        self._draw: Draw | None = None
        self._start()

    def _start(self) -> None:
        self._restarts = self._context.restarts
        seed, seed2 = (_as_int32(seed) for seed in (self._options.seed, self._options.seed2))
        if seed == 0 and seed2 == 0:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._generator = PhiloxRandom(seed, seed2, self._draw)

    def fitter(self, node: Node) -> Callable[[], Array]:
        """Return a function that resizes the node's output to the shape that its input holds now, and returns the output's array."""
        return _output_fitter(self._context, node)

    def draw_by(self, draw: Draw) -> None:
        """Replace the function that generates Philox blocks, e.g. by a compiled one."""
        self._draw = self._generator.draw = draw

    def generator(self) -> PhiloxRandom:
        """Return the generator, in the state that the last invoke left; restart it if the interpreter reset its state."""
        if self._restarts != self._context.restarts:
            self._start()
        return self._generator


def prepare_random(context: Context, node: Node) -> None:
    """Prepare a random node whose only input is the shape of its output."""
    ensure_operands(node, 1)
    shape, output = node.inputs[0], node.outputs[0]
    ensure_type(shape, *SHAPES)
    ensure(shape.ndim == 1, f"{shape} is the output's shape; it must be a vector.")
    ensure_type(output, TensorType.FLOAT32)
    node.prepared = Stream(context, node)
    if shape.is_constant:
        context.resize_tensor(output, _shape(shape))
    else:
        context.set_dynamic(output)


def _shape(tensor: Tensor) -> list[int]:
    shape = read_ints(tensor)
    ensure(all(dim >= 0 for dim in shape), f"{tensor} holds {shape}; a dimension must not be negative.")
    return shape


def _output_fitter(context: Context, node: Node) -> Callable[[], Array]:
    """Return a function that resizes a dynamic output to the shape that the input holds now, and returns the output's array."""
    shape, output = node.inputs[0], node.outputs[0]
    if not output.is_dynamic:
        return lambda: output.data
    last: tuple[bytes, Array] | None = None

    def fit() -> Array:
        nonlocal last
        held = shape.data.tobytes()
        if last is None or held != last[0] or not output.has_data or output.data is not last[1]:
            context.resize_tensor(output, _shape(shape))
            last = held, output.data
        return last[1]

    return fit


def bind_random(context: Context, node: Node, convert: Callable[[Words], NDArray[Any]]) -> Callable[[], None]:
    """Return a function that fills the output with random words, changed by `convert`; what the last block has left is dropped."""
    stream: Stream = node.prepared
    fit = _output_fitter(context, node)

    def run() -> None:
        data = fit().reshape(-1)
        generator = stream.generator()
        for first in range(0, data.size, _PART):
            checkpoint()
            part = data[first : first + _PART]
            part[...] = convert(generator.words(-(-part.size // 4)))[: part.size]

    return run


RANDOM_UNIFORM = Registration(prepare=prepare_random, bind=partial(bind_random, convert=uniform_floats), types=SHAPES)
RANDOM_STANDARD_NORMAL = Registration(prepare=prepare_random, bind=partial(bind_random, convert=normal_floats), types=SHAPES)
