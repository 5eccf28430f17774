"""Random numbers of a node's own generator, which advances from invoke to invoke. Numerics: tensorflow/core/kernels/random_op.cc.

The attributes `seed` and `seed2` are its seeds. If both are 0, TensorFlow draws seeds when the node is made, and so does this package.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics import philox
from oplet_flex_ops.numerics.operator import Shapes, Step, operator
from oplet_flex_ops.numerics.philox import RESERVED, Philox
from oplet_flex_ops.numerics.types import EVERY, FLOATS, INDEX
from oplet_flex_ops.ops.random.stateless import draw_classes, multinomial_shape, shape_of, shuffle_rows

#: Draws the output (the last argument) from a node's generator, and advances that as far as TensorFlow does.
_Draw = Callable[[Philox, Sequence[Array], Array], None]


class _State:
    """A node's random generator, created at its first run."""

    def __init__(self) -> None:
        self._generator: Philox | None = None

    def generator(self, attributes: Attributes) -> Philox:
        """Return the generator, in the state after the last invoke."""
        if self._generator is None:
            seed, seed2 = (attributes.integer(name, default=0) for name in ("seed", "seed2"))
            if seed == seed2 == 0:
                seed, seed2 = secrets.randbits(64), secrets.randbits(64)
            self._generator = Philox(seed, seed2 % (1 << 64) << 64)
        return self._generator


def _stateful(text: str, shapes: Shapes, draw: _Draw, **types: Any) -> Registration:
    """Build the registration of an op with its own random generator."""

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array], state: _State) -> Step:
        return lambda: draw(state.generator(attributes), inputs, outputs[0])

    return operator(text, shapes, widened={}, state=_State, **types)(formula)


def _shape(node: Node, attributes: Attributes) -> Sequence[Shape]:
    return [shape_of(node.inputs[0])]


def _drawn(draw: Callable[[Philox, Array], None]) -> Registration:
    def run(generator: Philox, inputs: Sequence[Array], output: Array) -> None:
        draw(generator.skip(output.size * RESERVED), output)

    return _stateful("T! -> dtype", _shape, run, dtype=FLOATS, T=INDEX)


def _integers() -> Registration:
    """Build RandomUniformInt: integers in [minval, maxval)."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        for bound in node.inputs[1:]:
            ensure(bound.ndim == 0, f"the bound {bound} must be a scalar.")
        return _shape(node, attributes)

    def run(generator: Philox, inputs: Sequence[Array], output: Array) -> None:
        low, high = (bound.item() for bound in inputs[1:])
        ensure(low < high or not output.size, f"minval is {low} and maxval {high}; Need minval < maxval.")
        if output.size:
            philox.integers(generator.skip(output.size * RESERVED), output, low, high)

    return _stateful("T!, Tout, Tout -> Tout", shapes, run, Tout=INDEX, T=INDEX)


def _multinomial() -> Registration:
    """Build Multinomial: classes drawn by each row of logits."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        return [multinomial_shape(node)]

    def run(generator: Philox, inputs: Sequence[Array], output: Array) -> None:
        rows, count = output.shape
        draw_classes(generator.skip(rows * -(-count // 4) * 8 * RESERVED), inputs[0], output)  # two words for each draw

    return _stateful("T, INT32! -> output_dtype=INT64", shapes, run, T=FLOATS, output_dtype=INDEX)


def _shuffle() -> Registration:
    """Build RandomShuffle: a tensor's rows in random order."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        return [node.inputs[0].shape]

    def run(generator: Philox, inputs: Sequence[Array], output: Array) -> None:
        [source] = inputs
        blocks = -(-(len(source) - 1) // 4) if source.ndim and prod(source.shape) and len(source) > 1 else 0
        shuffle_rows(generator.skip(blocks), source, output)

    return _stateful("T -> T", shapes, run, T=(*EVERY, TensorType.STRING))


MULTINOMIAL = _multinomial()
RANDOMSHUFFLE = _shuffle()
RANDOMSTANDARDNORMAL = _drawn(philox.normal)
RANDOMUNIFORM = _drawn(philox.uniform)
RANDOMUNIFORMINT = _integers()
TRUNCATEDNORMAL = _drawn(philox.truncated_normal)
