"""Stateless random ops: results depend on the seed input alone. Numerics: tensorflow/core/kernels/stateless_random_ops.cc and
_v2.cc.

The operators of version 1 take a seed of two integers, those of version 2 a key, a counter and the number of an algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Node, Registration, Tensor, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics import philox
from oplet_flex_ops.numerics.operator import Step, operator, writing
from oplet_flex_ops.numerics.philox import Philox
from oplet_flex_ops.numerics.types import EVERY, FLOATS, INDEX
from oplet_flex_ops.signature import Types

_FULL = (TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64)
#: The numbers of algorithms: Philox, and the best for the device, which is Philox on a CPU.
_PHILOX, _AUTOMATIC = 1, 3
#: Random numbers that are drawn at a time; an even number, as there are two to a block.
_AT_ONCE = 1 << 16


def shape_of(tensor: Tensor) -> Shape:
    """Return the shape that a vector tensor holds.

    Raises:
        EnsureError: the tensor is no vector, or a size is negative.
    """
    ensure(tensor.ndim == 1, f"{tensor} is a shape; it must be a vector.")
    sizes = read_ints(tensor)
    ensure(all(size >= 0 for size in sizes), f"{tensor} holds {sizes}; a size must not be negative.")
    return tuple(sizes)


def _ensure_seed(tensor: Tensor) -> None:
    ensure(tensor.shape == (2,), f"the seed {tensor} must hold two integers.")


def _generator(inputs: Sequence[Array], second: bool) -> Philox:
    """Build the generator from the inputs after the first: a seed, or (key, counter, algorithm) if `second` (version 2 ops)."""
    if not second:
        return philox.scrambled(tuple(inputs[1].tolist()))
    key, counter, algorithm = inputs[1].tolist(), inputs[2].tolist(), inputs[3].item()
    ensure(algorithm in (_PHILOX, _AUTOMATIC), f"the algorithm is {algorithm}; Philox ({_PHILOX}) runs on a CPU.")
    return Philox(key[0], counter[1] << 64 | counter[0])


def _ensure_generator(node: Node, second: bool) -> None:
    if not second:
        _ensure_seed(node.inputs[1])
        return
    key, counter, algorithm = node.inputs[1:4]
    ensure(key.shape == (1,), f"the key {key} must hold one number.")
    ensure(counter.ndim == 1 and counter.size >= 2, f"the counter {counter} must hold two numbers.")
    ensure(algorithm.size == 1, f"{algorithm} is the number of the algorithm; it must be one number.")


def _inputs(second: bool) -> tuple[str, dict[str, Any]]:
    """Return the shape and the seed, or generator, among an op's inputs, and what their type attributes may be."""
    if second:
        return "Tshape=INT32!, UINT64, UINT64, INT32", {"Tshape": INDEX}
    return "T=INT32!, Tseed=INT64", {"T": INDEX, "Tseed": INDEX}


def _drawn(draw: Callable[[Philox, Array], None], second: bool, values: Types = FLOATS, default: str = "FLOAT32") -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        _ensure_generator(node, second)
        return [shape_of(node.inputs[0])]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        return lambda: draw(_generator(inputs, second), outputs[0])

    text, types = _inputs(second)
    return operator(f"{text} -> dtype={default}", shapes, widened={}, dtype=values, **types)(formula)


def _integers(second: bool) -> Registration:
    """Build StatelessRandomUniformInt: integers in [minval, maxval)."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        _ensure_generator(node, second)
        for bound in node.inputs[-2:]:
            ensure(bound.ndim == 0, f"the bound {bound} must be a scalar.")
        return [shape_of(node.inputs[0])]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        def run() -> None:
            low, high = (bound.item() for bound in inputs[-2:])
            ensure(low < high, f"minval is {low} and maxval {high}; Need minval < maxval.")
            philox.integers(_generator(inputs, second), outputs[0], low, high)

        return run

    text, types = _inputs(second)
    return operator(f"{text}, dtype, dtype -> dtype", shapes, dtype=INDEX, **types)(formula)


def _key_and_counter(*, algorithm: bool) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        _ensure_seed(node.inputs[0])
        return [(1,), (2,), *([()] if algorithm else [])]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        def run() -> None:
            generator = philox.scrambled(tuple(inputs[0].tolist()))
            outputs[0][0] = generator.key
            outputs[1][...] = [generator.counter & 0xFFFFFFFFFFFFFFFF, generator.counter >> 64]
            if algorithm:
                outputs[2][...] = _PHILOX

        return run

    made = "UINT64, UINT64, INT32" if algorithm else "UINT64, UINT64"
    return operator(f"Tseed=INT64 -> {made}", shapes, Tseed=INDEX)(formula)


@operator(" -> INT32", lambda node, attributes: [()])
def STATELESSRANDOMGETALG(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    return lambda: outputs[0].fill(_PHILOX)


def multinomial_shape(node: Node) -> Shape:
    """Return the shape (rows of logits, samples) of drawn classes.

    Raises:
        EnsureError: the logits are no matrix of one class or more, or the number of samples is no single number from 0 on.
    """
    logits, samples = node.inputs[:2]
    ensure(logits.ndim == 2 and logits.shape[1] > 0, f"the logits {logits} must be a matrix with one class or more.")
    ensure(samples.ndim == 0, f"{samples} is the number of samples; it must be a scalar.")
    [count] = read_ints(samples)
    ensure(count >= 0, f"the number of samples is {count}; it must not be negative.")
    return (logits.shape[0], count)


def draw_classes(generator: Philox, logits: Array, output: Array) -> None:
    """Fill each row of `output` with classes drawn by the row of logits."""
    count, flat = output.shape[1], output.reshape(-1)
    for first in range(0, flat.size, _AT_ONCE):
        draws = philox.doubles(generator, min(_AT_ONCE, flat.size - first))
        at, end = first, first + len(draws)
        while at < end:
            row = at // count
            if not row % 16:
                checkpoint()
            stop = min(end, (row + 1) * count)
            flat[at:stop] = philox.categories(draws[at - first : stop - first], logits[row])
            at = stop


def _multinomial_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    _ensure_seed(node.inputs[2])
    return [multinomial_shape(node)]


@operator("T, INT32!, Tseed=INT64 -> output_dtype=INT64", _multinomial_shapes, T=FLOATS, Tseed=INDEX, output_dtype=INDEX)
@writing
def STATELESSMULTINOMIAL(logits: Array, samples: Array, seed: Array, output: Array) -> None:
    draw_classes(philox.scrambled(tuple(seed.tolist())), logits, output)


def _shuffle_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    _ensure_generator(node, True)
    return [node.inputs[0].shape]


@operator("T, UINT64, UINT64, INT32 -> T", _shuffle_shapes, widened={}, T=(*EVERY, TensorType.STRING))
def STATELESSSHUFFLE(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Copy a tensor's rows in random order."""
    return lambda: shuffle_rows(_generator(inputs, True), inputs[0], outputs[0])


def shuffle_rows(generator: Philox, source: Array, output: Array) -> None:
    """Copy the rows of `source` to `output`, shuffled by Fisher and Yates with one random word for each row but the last."""
    if source.ndim == 0 or len(source) < 2:
        np.copyto(output, source)
        return
    count = len(source) - 1
    words = np.empty(count, np.uint32)
    philox.integers(generator, words)
    np.take(source, philox.shuffled(words, len(source)), 0, output)


STATELESSRANDOMGETKEYCOUNTER = _key_and_counter(algorithm=False)
STATELESSRANDOMGETKEYCOUNTERALG = _key_and_counter(algorithm=True)
STATELESSRANDOMNORMAL = _drawn(philox.normal, False)
STATELESSRANDOMNORMALV2 = _drawn(philox.normal, True)
STATELESSRANDOMUNIFORM = _drawn(philox.uniform, False)
STATELESSRANDOMUNIFORMFULLINT = _drawn(philox.integers, False, _FULL, "UINT64")
STATELESSRANDOMUNIFORMFULLINTV2 = _drawn(philox.integers, True, _FULL, "UINT64")
STATELESSRANDOMUNIFORMINT = _integers(False)
STATELESSRANDOMUNIFORMINTV2 = _integers(True)
STATELESSRANDOMUNIFORMV2 = _drawn(philox.uniform, True)
STATELESSTRUNCATEDNORMAL = _drawn(philox.truncated_normal, False)
STATELESSTRUNCATEDNORMALV2 = _drawn(philox.truncated_normal, True)
