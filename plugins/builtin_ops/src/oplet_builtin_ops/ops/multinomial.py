"""MULTINOMIAL: draw classes by their unnormalised log probabilities. Numerics: tflite/kernels/random_ops.cc."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array
from oplet.kernels.axes import read_int
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.control.philox import PhiloxRandom, uniform_doubles
from oplet_builtin_ops.control.randoms import Stream

#: The blocks by which an invoke advances the stream for each sample; it uses far fewer.
_RESERVED = 2 * 256
#: Logits, or samples, per part; the least blocks to draw; the most classes that are counted one by one.
_PART, _BLOCKS, _FEW = 1 << 16, 1 << 10, 16
#: Bytes of scratch per logit for the running sums.
_SCRATCH = 40
_TYPES = (TensorType.FLOAT32,)


def prepare(context: Context, node: Node) -> None:
    """Set the output shape of MULTINOMIAL: a row of samples for each row of logits."""
    ensure_operands(node, 2)
    logits, samples = node.inputs
    ensure_type(logits, *_TYPES)
    ensure_type(samples, TensorType.INT32)
    ensure_type(node.outputs[0], TensorType.INT64, TensorType.INT32)
    ensure(logits.ndim == 2, f"the logits {logits} must have two dimensions.")
    ensure(logits.shape[1] > 0, f"the logits {logits} have no classes.")
    node.prepared = Stream(context, node)
    if logits.is_constant and samples.is_constant:
        context.resize_tensor(node.outputs[0], (logits.shape[0], _count(node)))
    else:
        context.set_dynamic(node.outputs[0])


def _count(node: Node) -> int:
    samples = node.inputs[1]
    ensure(samples.ndim == 0, lambda: f"the number of samples {samples} must be a scalar.")
    count = read_int(samples)
    ensure(count >= 0, f"{count} samples are asked for; that must not be negative.")
    return count


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that draws samples by inverting each row's cumulative distribution."""
    stream: Stream = node.prepared
    logits, output = node.inputs[0].data, node.outputs[0]

    def run() -> None:
        generator = stream.generator()
        rows, count = logits.shape[0], _count(node)
        context.resize_tensor(output, (rows, count))
        blocks = -(-rows * count // 2)
        drawn = _Doubles(generator, blocks)
        samples = output.data
        step = max(1, _PART // max(logits.shape[1], count))
        charge(_SCRATCH * min(step, rows) * logits.shape[1])
        for first in range(0, rows if count else 0, step):
            checkpoint()
            totals = _cumulative(logits[first : first + step])
            _pick(totals, drawn, samples[first : first + step])
        generator.skip(rows * -(-count // 4) * 4 * _RESERVED - blocks)

    return run


class _Doubles:
    """The uniform random doubles of a generator, generated a part at a time, two per Philox block.

    Args:
        blocks: the number of blocks by which the stream advances.
    """

    def __init__(self, generator: PhiloxRandom, blocks: int) -> None:
        self._generator = generator
        self._left = blocks
        self._spare = np.empty(0)

    def take(self, count: int) -> Array:
        """Return the next `count` uniform doubles."""
        parts = [self._spare]
        there = len(self._spare)
        if there < count:
            blocks = min(self._left, max(_BLOCKS, -(-(count - there) // 2)))
            self._left -= blocks
            parts.append(uniform_doubles(self._generator.words(blocks)))
        numbers: Array = np.concatenate(parts)
        self._spare = numbers[count:]
        return numbers[:count]


def _pick(totals: Array, drawn: _Doubles, samples: Array) -> None:
    """Write into `samples` the class whose interval of the row's cumulative sums contains each drawn number."""
    rows, classes = totals.shape
    count = samples.shape[1]
    if rows == 1:
        [row], [target] = totals, samples
        for first in range(0, count, _PART):
            checkpoint()
            part = target[first : first + _PART]
            part[...] = np.searchsorted(row, drawn.take(len(part)) * row[-1], side="right")
        return
    numbers = drawn.take(rows * count).reshape(rows, count) * totals[:, -1:]
    if classes > _FEW:
        for row, wanted, target in zip(totals, numbers, samples):
            target[...] = np.searchsorted(row, wanted, side="right")
        return
    samples.fill(0)
    for column in totals.T:  # many rows at a time, class by class
        samples += column[:, None] <= numbers


def _cumulative(logits: Array) -> Array:
    """Return each row's running sums of exp(logit - max) in float64; infinite and NaN logits have probability 0."""
    finite = np.isfinite(logits)
    highest = np.where(finite, logits, np.finfo(np.float32).min).max(1, keepdims=True).astype(np.float64)
    weights = np.exp(np.where(finite, logits, 0) - highest, where=finite, out=np.zeros(logits.shape))
    totals: Array = np.cumsum(weights, 1)
    return totals


REGISTRATION = Registration(prepare=prepare, bind=bind, types=_TYPES)
