"""The counter-based random generators Philox4x32-10 and Threefry2x32-20, for many blocks at a time.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). The order in which seeds and counters are used is that of
tflite/kernels/random_ops.cc (TensorFlow's PhiloxRandom) and tflite/kernels/rng_util.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PhiloxRandom", "philox4x32", "threefry2x32", "uniform_floats"]

Words = NDArray[np.uint32]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_PHILOX_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_PHILOX_WEYL = 0x9E3779B9, 0xBB67AE85
_PHILOX_ROUNDS = 10
_THREEFRY_PARITY = 0x1BD11BDA
_THREEFRY_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)


def philox4x32(key: tuple[int, int], counter: tuple[Any, Any, Any, Any]) -> Words:
    """One row of four words for each counter.

    Args:
        key: two 32-bit words.
        counter: four 32-bit words, as uint64 arrays or scalars that broadcast.
    """
    c0, c1, c2, c3 = (np.asarray(word, np.uint64) for word in counter)
    k0, k1 = key
    for _ in range(_PHILOX_ROUNDS):
        p0, p1 = _PHILOX_FACTORS[0] * c0, _PHILOX_FACTORS[1] * c2
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), p1 & _LOW, (p0 >> _HALF) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + _PHILOX_WEYL[0]) & 0xFFFFFFFF, (k1 + _PHILOX_WEYL[1]) & 0xFFFFFFFF
    return np.stack(np.broadcast_arrays(c0, c1, c2, c3), -1).astype(np.uint32)


def threefry2x32(key: tuple[int, int], counter: tuple[Any, Any]) -> Words:
    """One row of two words for each counter; arguments as for `philox4x32`."""
    keys = [np.uint32(key[0]), np.uint32(key[1]), np.uint32(key[0] ^ key[1] ^ _THREEFRY_PARITY)]
    c0, c1 = (np.atleast_1d(np.asarray(word)).astype(np.uint32) for word in counter)
    c0, c1 = c0 + keys[0], c1 + keys[1]
    for step in range(5):
        for rotation in _THREEFRY_ROTATIONS[step % 2]:
            c0 = c0 + c1
            c1 = ((c1 << np.uint32(rotation)) | (c1 >> np.uint32(32 - rotation))) ^ c0
        c0, c1 = c0 + keys[(step + 1) % 3], c1 + keys[(step + 2) % 3] + np.uint32(step + 1)
    return np.stack(np.broadcast_arrays(c0, c1), -1)


class PhiloxRandom:
    """A stream of Philox blocks, seeded as TensorFlow's PhiloxRandom is.

    Args:
        seed: 64 bits, the key.
        seed2: 64 bits, the upper half of the counter.
    """

    def __init__(self, seed: int, seed2: int) -> None:
        seed &= 2**64 - 1
        self._key = seed & 0xFFFFFFFF, seed >> 32
        self._counter = (seed2 & (2**64 - 1)) << 64

    def words(self, blocks: int) -> Words:
        """The next blocks, of four words each, in one row; the stream advances."""
        position = self._counter
        self.skip(blocks)
        low = np.arange(blocks, dtype=np.uint64) + np.uint64(position & (2**64 - 1))
        high = (position >> 64) + (low < (position & (2**64 - 1))).astype(object)
        high = np.asarray(high % 2**64, np.uint64) if self._counter >> 64 != position >> 64 else np.uint64(position >> 64)
        return philox4x32(self._key, (low & _LOW, low >> _HALF, high & _LOW, high >> _HALF)).reshape(-1)

    def skip(self, blocks: int) -> None:
        """Advance the stream without computing the blocks."""
        self._counter = (self._counter + blocks) % 2**128


def uniform_floats(words: Words) -> NDArray[np.float32]:
    """Floats in [0, 1): 23 bits of each word are the mantissa of a number in [1, 2), from which 1 is subtracted."""
    floats: NDArray[np.float32] = ((words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)
    return floats


def uniform_doubles(words: Words) -> NDArray[np.float64]:
    """Doubles in [0, 1), one from every two words: 20 bits of the first and all of the second."""
    pairs = words.reshape(-1, 2).astype(np.uint64)
    mantissa = ((pairs[:, 0] & np.uint64(0xFFFFF)) << _HALF) | pairs[:, 1]
    doubles: NDArray[np.float64] = (mantissa | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
    return doubles


def normal_floats(words: Words) -> NDArray[np.float32]:
    """Normally distributed floats, two from every two words, by the Box-Muller transform."""
    uniform = uniform_floats(words).reshape(-1, 2)
    radius = np.sqrt(np.float32(-2) * np.log(np.maximum(uniform[:, 0], np.float32(1e-7))))
    angle = (2 * np.pi * uniform[:, 1].astype(np.float64)).astype(np.float32)
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], -1).reshape(-1)
