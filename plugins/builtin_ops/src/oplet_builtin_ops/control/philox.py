"""The counter-based random generators Philox4x32-10 and Threefry2x32-20, for many blocks at a time.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). The order in which seeds and counters are used is that of
tflite/kernels/random_ops.cc (TensorFlow's PhiloxRandom) and tflite/kernels/rng_util.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Draw", "PhiloxRandom", "philox4x32", "threefry2x32", "uniform_floats"]

Words = NDArray[np.uint32]
State = tuple[int, int, int]
#: Returns the words of the next blocks, in one row, from a state and their number.
Draw = Callable[[State, int], Words]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MASK = 0xFFFFFFFF
_PHILOX_FACTORS = 0xD2511F53, 0xCD9E8D57
_FACTORS = np.array(_PHILOX_FACTORS, np.uint64)[:, None]
_PHILOX_WEYL = 0x9E3779B9, 0xBB67AE85
_PHILOX_ROUNDS = 10
_THREEFRY_PARITY = 0x1BD11BDA
_THREEFRY_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
#: The most blocks for which Python's integers are faster than arrays.
_FEW_PHILOX, _FEW_THREEFRY = 8, 6
#: Arrays, since ufuncs would convert numbers at each call.
_MANTISSA, _ONE_BITS = np.array(0x7FFFFF, np.uint32), np.array(0x3F800000, np.uint32)
_ONE, _MINUS_TWO, _TINY = (np.array(value, np.float32) for value in (1, -2, 1e-7))
_TURN = np.array(2 * np.pi)


def philox4x32(key: tuple[int, int], counter: tuple[Any, Any, Any, Any]) -> Words:
    """Generate Philox4x32-10 blocks, one row of four words for each counter.

    Args:
        key: two 32-bit words.
        counter: four 32-bit words, as uint64 arrays or scalars that broadcast.
    """
    columns = [np.asarray(word, np.uint64) for word in counter]
    shape = np.broadcast(*columns).shape
    # Words 0 and 2 as uint64, of which the upper halves stay 0; words 1 and 3 are the low halves of the last products.
    even, odd = np.empty((2, *shape), np.uint64), np.empty((2, *shape), np.uint32)
    even[0], even[1] = columns[0], columns[2]
    np.copyto(odd[0, ...], columns[1], "unsafe")
    np.copyto(odd[1, ...], columns[3], "unsafe")
    even, odd = even.reshape(2, -1), odd.reshape(2, -1)
    if 0 < even.shape[1] <= _FEW_PHILOX:
        blocks = [
            _philox_block(*key, *words) for words in zip(even[0].tolist(), odd[0].tolist(), even[1].tolist(), odd[1].tolist())
        ]
        return np.array(blocks, np.uint32).reshape(*shape, 4)
    products = [np.empty_like(even) for _ in range(2)]
    low = even.view(np.uint32)[:, ::2]
    halves = [(product.view(np.uint32)[::-1, ::2], product.view(np.uint32)[::-1, 1::2]) for product in products]
    for number, round_key in enumerate(_round_keys(*key)):
        product, (lower, upper) = products[number & 1], halves[number & 1]
        np.multiply(even, _FACTORS, product)
        np.bitwise_xor(upper, odd, low)
        np.bitwise_xor(low, round_key, low)
        odd = lower
    rows: Words = np.empty((even.shape[1], 4), np.uint32)
    rows[:, ::2], rows[:, 1::2] = low.T, odd.T
    return np.asarray(rows.reshape(*shape, 4))


@lru_cache(maxsize=64)
def _round_keys(k0: int, k1: int) -> Words:
    """Return the Philox key of every round, shape (rounds, 2, 1)."""
    steps = range(_PHILOX_ROUNDS)
    keys = [[(k + step * weyl) & _MASK for k, weyl in zip((k0, k1), _PHILOX_WEYL)] for step in steps]
    return np.array(keys, np.uint32)[:, :, None]


def _philox_block(k0: int, k1: int, c0: int, c1: int, c2: int, c3: int) -> tuple[int, int, int, int]:
    """Compute one Philox4x32-10 block in Python integers."""
    (f0, f1), (w0, w1) = _PHILOX_FACTORS, _PHILOX_WEYL
    for _ in range(_PHILOX_ROUNDS):
        p0, p1 = f0 * c0, f1 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & _MASK, p0 >> 32 ^ c3 ^ k1, p0 & _MASK
        k0, k1 = k0 + w0 & _MASK, k1 + w1 & _MASK
    return c0, c1, c2, c3


def threefry2x32(key: tuple[int, int], counter: tuple[Any, Any]) -> Words:
    """Generate Threefry2x32-20 blocks, one row of two words for each counter.

    Args:
        key: two 32-bit words.
        counter: two 32-bit words, as arrays or scalars that broadcast.
    """
    keys = key[0], key[1], key[0] ^ key[1] ^ _THREEFRY_PARITY
    c0, c1 = np.broadcast_arrays(*(np.atleast_1d(np.asarray(word)).astype(np.uint32) for word in counter))
    if 0 < c0.size <= _FEW_THREEFRY:
        blocks = [_threefry_block(keys, *words) for words in zip(c0.reshape(-1).tolist(), c1.reshape(-1).tolist())]
        return np.array(blocks, np.uint32).reshape(*c0.shape, 2)
    injected = [np.array(word, np.uint32) for word in keys]
    c0, c1 = c0 + injected[0], c1 + injected[1]
    spare = np.empty_like(c1)
    for step in range(5):
        for rotation in _THREEFRY_ROTATIONS[step % 2]:
            np.add(c0, c1, c0)
            np.right_shift(c1, np.uint32(32 - rotation), spare)
            np.left_shift(c1, np.uint32(rotation), c1)
            np.bitwise_or(c1, spare, c1)
            np.bitwise_xor(c1, c0, c1)
        np.add(c0, injected[(step + 1) % 3], c0)
        np.add(c1, injected[(step + 2) % 3], c1)
        np.add(c1, np.uint32(step + 1), c1)
    return np.stack((c0, c1), -1)


def _threefry_block(keys: tuple[int, int, int], c0: int, c1: int) -> tuple[int, int]:
    """Compute one Threefry2x32-20 block in Python integers."""
    c0, c1 = c0 + keys[0] & _MASK, c1 + keys[1] & _MASK
    for step in range(5):
        for rotation in _THREEFRY_ROTATIONS[step % 2]:
            c0 = c0 + c1 & _MASK
            c1 = (c1 << rotation | c1 >> 32 - rotation) & _MASK ^ c0
        c0, c1 = c0 + keys[(step + 1) % 3] & _MASK, c1 + keys[(step + 2) % 3] + step + 1 & _MASK
    return c0, c1


class PhiloxRandom:
    """A stream of Philox blocks, seeded as TensorFlow's PhiloxRandom is.

    Args:
        seed: 64 bits, the key.
        seed2: 64 bits, the upper half of the 128-bit counter.
        draw: a function that computes blocks from the state and their number, in place of the numpy code; None for the numpy
            code.

    Attributes:
        draw: the function that computes the blocks; None for the numpy code.
    """

    def __init__(self, seed: int, seed2: int, draw: Draw | None = None) -> None:
        self.draw = draw
        seed &= 2**64 - 1
        self._key = seed & 0xFFFFFFFF, seed >> 32
        self._counter = (seed2 & (2**64 - 1)) << 64

    @property
    def state(self) -> State:
        """The generator's state as 64-bit integers: the key, and the lower and upper half of the counter."""
        return self._key[0] | self._key[1] << 32, self._counter & (2**64 - 1), self._counter >> 64

    def words(self, blocks: int) -> Words:
        """Draw the next `blocks` blocks of four words each as one flat array, and advance the stream."""
        if self.draw is not None:
            drawn = self.draw(self.state, blocks)
            self.skip(blocks)
            return drawn
        position = self._counter
        self.skip(blocks)
        if blocks <= _FEW_PHILOX:
            words: list[int] = []
            for number in range(position, position + blocks):
                words += _philox_block(
                    *self._key, number & _MASK, number >> 32 & _MASK, number >> 64 & _MASK, number >> 96 & _MASK
                )
            return np.array(words, np.uint32)
        low = np.arange(blocks, dtype=np.uint64) + np.uint64(position & (2**64 - 1))
        high: Any = np.uint64(position >> 64)
        if self._counter >> 64 != position >> 64:  # the lower half begins anew within these blocks
            high = np.asarray(((position >> 64) + (low < (position & (2**64 - 1))).astype(object)) % 2**64, np.uint64)
        return philox4x32(self._key, (low & _LOW, low >> _HALF, high & _LOW, high >> _HALF)).reshape(-1)

    def skip(self, blocks: int) -> None:
        """Advance the stream without computing the blocks."""
        self._counter = (self._counter + blocks) % 2**128


def uniform_floats(words: Words) -> NDArray[np.float32]:
    """Convert words to floats in [0, 1): 23 bits are the mantissa of a number in [1, 2), minus 1."""
    bits = np.bitwise_and(words, _MANTISSA)
    floats: NDArray[np.float32] = np.bitwise_or(bits, _ONE_BITS, bits).view(np.float32)
    return np.subtract(floats, _ONE, floats)


def uniform_doubles(words: Words) -> NDArray[np.float64]:
    """Convert pairs of words to doubles in [0, 1): 20 bits of the first word and all of the second."""
    pairs = words.reshape(-1, 2).astype(np.uint64)
    mantissa = ((pairs[:, 0] & np.uint64(0xFFFFF)) << _HALF) | pairs[:, 1]
    doubles: NDArray[np.float64] = (mantissa | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
    return doubles


def normal_floats(words: Words) -> NDArray[np.float32]:
    """Convert pairs of words to two standard normal floats each, by the Box-Muller transform."""
    uniform = uniform_floats(words).reshape(-1, 2)
    radius = np.maximum(uniform[:, 0], _TINY)
    np.log(radius, radius)
    np.multiply(radius, _MINUS_TWO, radius)
    np.sqrt(radius, radius)
    angle = np.multiply(uniform[:, 1], _TURN).astype(np.float32)
    np.multiply(np.sin(angle), radius, uniform[:, 0])
    np.multiply(np.cos(angle, angle), radius, uniform[:, 1])
    return uniform.reshape(-1)
