"""MULTINOMIAL: draw classes by their unnormalised log probabilities. Numerics: tflite/kernels/random_ops.cc."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet_builtin_ops.control.philox import uniform_doubles
from oplet_builtin_ops.control.randoms import Stream
from oplet_builtin_ops.shaping.shapes import Array, ensure_operands, read_int

#: Blocks that one invoke takes from the stream for each sample; it uses far fewer.
_RESERVED = 2 * 256
_TYPES = (TensorType.FLOAT32,)


def prepare(context: Context, node: Node) -> None:
    """The output has a row of samples for each row of logits."""
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
    """The thunk looks uniform numbers up in each row's cumulative probabilities."""
    stream: Stream = node.prepared
    logits, output = node.inputs[0].data, node.outputs[0]

    def run() -> None:
        generator = stream.generator()
        rows, count = logits.shape[0], _count(node)
        context.resize_tensor(output, (rows, count))
        blocks = -(-rows * count // 2)
        uniform = uniform_doubles(generator.words(blocks))[: rows * count].reshape(rows, count)
        generator.skip(rows * -(-count // 4) * 4 * _RESERVED - blocks)
        totals = _cumulative(logits)
        for row, numbers, target in zip(totals, uniform, output.data):
            target[...] = np.searchsorted(row, numbers * row[-1], side="right")

    return run


def _cumulative(logits: Array) -> Array:
    """The running sums of exp(logit - max) of each row, in double; infinite and undefined logits count as impossible."""
    finite = np.isfinite(logits)
    highest = np.where(finite, logits, np.finfo(np.float32).min).max(1, keepdims=True).astype(np.float64)
    weights = np.exp(np.where(finite, logits, 0) - highest, where=finite, out=np.zeros(logits.shape))
    totals: Array = np.cumsum(weights, 1)
    return totals


REGISTRATION = Registration(prepare=prepare, bind=bind, types=_TYPES)
