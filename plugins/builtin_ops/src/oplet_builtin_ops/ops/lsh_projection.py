"""LSH_PROJECTION: bits of locality-sensitive hashes: the signs of weighted sums of fingerprints of a seed and each item.

Numerics: tflite/kernels/lsh_projection.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.enums import LSHProjectionType
from oplet.schema.options import LSHProjectionOptions
from oplet_builtin_ops.arithmetic.farmhash import fingerprint64
from oplet_builtin_ops.operands import all_types_but

#: Bytes of an item's Python object; a mask of item numbers: a checkpoint follows each time that its bits are 0.
_OBJECT, _OFTEN = 64, 255
_TYPES = all_types_but(TensorType.STRING)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, optional=1)
    seeds, items, weights = node.inputs[0], node.inputs[1], node.optional_input(2)
    kind = node.options(LSHProjectionOptions).type
    ensure_type(seeds, TensorType.FLOAT32)
    ensure(seeds.ndim == 2, f"the seeds {seeds} must have 2 dimensions.")
    hashes, bits = seeds.shape
    ensure(bits <= 32, f"the seeds {seeds} ask for hashes of {bits} bits; 32 is the most.")
    ensure(items.type in _TYPES, f"{items} has no fixed size in bytes.")
    ensure(items.ndim >= 1 and items.shape[0] >= 1, f"there must be at least one item in {items}.")
    ensure(not items.dtype.hasobject, f"{items} must hold numbers, whose bytes are hashed.")
    if weights is not None:
        ensure_type(weights, TensorType.FLOAT32)
        ensure(weights.shape == items.shape[:1], f"the weights {weights} must be one for each item of {items}.")
    known = (LSHProjectionType.SPARSE, LSHProjectionType.DENSE)
    ensure(kind in known, f"the projection's type is {kind}, which must be SPARSE or DENSE.")
    ensure_type(node.outputs[0], TensorType.INT32)
    context.resize_tensor(node.outputs[0], (hashes * bits if kind == LSHProjectionType.DENSE else hashes,))


def bind(context: Context, node: Node) -> Thunk:
    seeds, items, weights = node.inputs[0], node.inputs[1], node.optional_input(2)
    output, dense = node.outputs[0].data, node.options(LSHProjectionOptions).type == LSHProjectionType.DENSE
    hashes, bits = seeds.shape

    def run() -> None:
        charge(items.nbytes + _OBJECT * len(items.data))
        keys = [item.tobytes() for item in items.data]
        factors = [1.0] * len(keys) if weights is None else weights.data.tolist()
        signs = np.array([_sign(seed.tobytes(), keys, factors) for seed in seeds.data.reshape(-1)], np.int64)
        output[...] = signs if dense else _numbers(signs.reshape(hashes, bits))

    return run


def _sign(seed: bytes, keys: list[bytes], factors: list[float]) -> bool:
    score = 0.0
    for number, (key, factor) in enumerate(zip(keys, factors)):
        if not number & _OFTEN:
            checkpoint()
        hashed = fingerprint64(seed + key)
        score += factor * float(hashed - (hashed >> 63 << 64))
    return score > 0


def _numbers(signs: Array) -> Array:
    """Return each hash's sign bits as a 32-bit integer, offset so that hashes have disjoint ranges."""
    hashes, bits = signs.shape
    powers = np.int64(1) << np.arange(bits - 1, -1, -1)
    ranges = np.arange(hashes, dtype=np.int64) << (bits & 31)
    return np.asarray((signs * powers).sum(axis=1) + ranges).astype(np.int32)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
