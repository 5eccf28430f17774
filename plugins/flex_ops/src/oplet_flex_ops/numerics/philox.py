"""The counter-based random generator Philox4x32-10, and the distributions that TensorFlow's CPU kernels draw from it.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); the order of words is that of
tensorflow/core/lib/random/philox_random.h, random_distributions.h and core/kernels/random_op_cpu.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from oplet import checkpoint
from oplet.kernels.arrays import Array
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.kernel import zeros

__all__ = [
    "RESERVED",
    "Philox",
    "categories",
    "doubles",
    "integers",
    "normal",
    "scrambled",
    "shuffled",
    "truncated_normal",
    "uniform",
]

Words = NDArray[np.uint32]

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85
_SIXTY_FOUR = (1 << 64) - 1
#: The blocks that are drawn at a time: one takes the memory of a dozen.
_PART = 1 << 15
#: The blocks that an operator reserves for each output, so that distributions which reject may draw more.
RESERVED = 256


class Philox:
    """A Philox random stream: a sequence of blocks of four 32-bit words.

    Args:
        key: 64 bits.
        counter: 128 bits, the number of the first block.
    """

    def __init__(self, key: int, counter: int) -> None:
        self.key, self.counter = key & _SIXTY_FOUR, counter % (1 << 128)

    def blocks(self, first: Array, count: int = 1) -> Words:
        """Generate `count` blocks from each number in `first` on, relative to the stream's block: shape (..., 4 * count)."""
        numbers = np.asarray(first, np.uint64)[..., None] + np.arange(count, dtype=np.uint64)
        low = numbers + np.uint64(self.counter & _SIXTY_FOUR)
        high = np.uint64(self.counter >> 64) + (low < numbers)
        c0, c1, c2, c3 = low & _LOW, low >> _HALF, high & _LOW, high >> _HALF
        k0, k1 = self.key & 0xFFFFFFFF, self.key >> 32
        for _ in range(10):
            p0, p1 = _FACTORS[0] * c0, _FACTORS[1] * c2
            c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), p1 & _LOW, (p0 >> _HALF) ^ c3 ^ np.uint64(k1), p0 & _LOW
            k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
        return np.stack([c0, c1, c2, c3], -1).astype(np.uint32).reshape(*numbers.shape[:-1], 4 * count)

    def skip(self, count: int) -> Philox:
        """Advance the stream by `count` blocks; return a generator at the former position."""
        before = Philox(self.key, self.counter)
        self.counter = (self.counter + count) % (1 << 128)
        return before


def scrambled(seed: tuple[int, int]) -> Philox:
    """Build a stateless op's generator: the seed is mixed by Philox itself (stateless_random_ops.cc, GenerateKey)."""
    low, high = seed[0] & _SIXTY_FOUR, seed[1] & _SIXTY_FOUR
    mixed = [int(word) for word in Philox(0x02461E293EC8F720, high << 64 | low).blocks(np.zeros((), np.uint64)).ravel()]
    return Philox(mixed[1] << 32 | mixed[0], (mixed[3] << 32 | mixed[2]) << 64)


#: Makes values of a row of words.
Distribution = Callable[[Words], Array]


def fill(generator: Philox, out: Array, per_block: int, distribution: Distribution) -> None:
    """Fill `out` with `per_block` values from each block in order; leftover values of the last block are dropped."""
    flat = out.reshape(-1)
    size = _PART * per_block
    for start in range(0, flat.size, size):
        checkpoint()
        part = flat[start : start + size]
        numbers = np.arange(start // per_block, start // per_block - (-part.size // per_block), dtype=np.uint64)
        part[...] = distribution(generator.blocks(numbers).reshape(-1))[: part.size]


def _singles(words: Words) -> Array:
    """Convert words to float32 in [0, 1) with 23 random bits."""
    result: Array = ((words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)
    return result


def _doubles(words: Words) -> Array:
    """Convert pairs of words to float64 in [0, 1) with 52 random bits."""
    pairs = words.reshape(-1, 2).astype(np.uint64)
    bits = ((pairs[:, 0] & np.uint64(0xFFFFF)) << _HALF) | pairs[:, 1] | np.uint64(0x3FF0000000000000)
    result: Array = bits.view(np.float64) - 1.0
    return result


def uniform(generator: Philox, out: Array) -> None:
    """Fill `out`, of any float type, with uniform values in [0, 1)."""
    if out.dtype == np.float64:
        fill(generator, out, 2, _doubles)
    elif out.dtype == np.float32:
        fill(generator, out, 4, _singles)
    else:
        # As many bits as the mantissa has: 10 of float16, 7 of bfloat16.
        bits, one = (10, 15) if out.dtype == np.float16 else (7, 127)
        mask, exponent = np.uint16((1 << bits) - 1), np.uint16(one << bits)

        def halves(words: Words) -> Array:
            values = ((words.astype(np.uint16) & mask) | exponent).view(out.dtype)
            result: Array = values - np.ones((), out.dtype)
            return result

        fill(generator, out, 4, halves)


def _wide(words: Words) -> Array:
    """Combine pairs of words to 64-bit integers, lower half first."""
    pairs = words.reshape(-1, 2).astype(np.uint64)
    result: Array = pairs[:, 0] | (pairs[:, 1] << _HALF)
    return result


def integers(generator: Philox, out: Array, low: int = 0, high: int | None = None) -> None:
    """Fill `out` with uniform integers in [low, high), or over the type's whole range if `high` is None."""
    wide = out.dtype.itemsize == 8
    word = np.uint64 if wide else np.uint32

    def draw(words: Words) -> Array:
        values = _wide(words) if wide else words
        if high is not None:
            values = values % word(high - low) + np.array(low, out.dtype).view(word)
        return values.view(out.dtype)

    fill(generator, out, 2 if wide else 4, draw)


def _pairs(words: Words, double: bool) -> Array:
    """Convert words to standard normal values, two from every two uniform ones, by the Box-Muller transform."""
    values = (_doubles(words) if double else _singles(words)).reshape(-1, 2)
    kind = values.dtype.type
    radius = np.sqrt(kind(-2) * np.log(np.maximum(values[:, 0], kind(1e-7))))
    angle = (2 * math.pi * values[:, 1].astype(np.float64)).astype(kind)
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], -1).reshape(-1)


def normal(generator: Philox, out: Array) -> None:
    """Fill `out`, of any float type, with standard normal values."""
    double = out.dtype == np.float64
    fill(generator, out, 2 if double else 4, lambda words: _pairs(words, double))


def truncated_normal(generator: Philox, out: Array) -> None:
    """Fill `out` with standard normal values of magnitude below 2, by rejection.

    As in TensorFlow, each group of values (as many as one block yields) draws from a range of blocks of its own.
    """
    double = out.dtype == np.float64
    group = 2 if double else 4
    stretch = group * RESERVED // 4
    flat = out.reshape(-1)
    step = _PART // 8
    for start in range(0, flat.size, step * group):
        checkpoint()
        part = flat[start : start + step * group]
        groups = -(-part.size // group)
        firsts = (np.arange(groups, dtype=np.uint64) + np.uint64(start // group)) * np.uint64(stretch)
        values = np.zeros((groups, group), np.float64 if double else np.float32)
        waiting = np.arange(groups)
        count = 3 * (2 if double else 1)
        while len(waiting):
            # The values of a block come in pairs from two draws; of each group the first that fit are taken.
            words = generator.blocks(firsts[waiting], count)
            drawn = _pairs(words.reshape(-1), double).reshape(len(waiting), -1)
            fits = np.abs(drawn) < 2
            done = fits.sum(1) >= group
            places = np.argsort(~fits[done], axis=1, kind="stable")[:, :group]
            values[waiting[done]] = np.take_along_axis(drawn[done], places, 1)
            waiting, count = waiting[~done], count * 2
            if count > RESERVED * 64:  # no stream of Philox goes on like this
                break
        part[...] = values.reshape(-1)[: part.size]


def categories(draws: Array, logits: Array) -> Array:
    """Return the class of each uniform draw in [0, 1), by inverting the row's cumulative distribution of exp(logit - max)."""
    weights = zeros(logits.shape, np.float64)
    finite = np.isfinite(logits)
    if finite.any():
        np.copyto(weights, logits)
        weights[~finite] = -np.inf
        weights -= weights.max()
        np.exp(weights, weights)
    cumulated = np.cumsum(weights, out=weights)
    found: Array = np.searchsorted(cumulated, draws * cumulated[-1], side="right")
    return found


def shuffled(words: Words, size: int) -> Array:
    """Return 0 .. size - 1 in random order (Fisher-Yates), with one of the random `words` for each number but the last."""
    order = list(range(size))
    for place, word in paced(zip(range(size - 1), listed(words))):
        other = place + word % (size - place)
        order[place], order[other] = order[other], order[place]
    return np.array(order, np.int64)


def doubles(generator: Philox, count: int) -> Array:
    """Return the next `count` uniform doubles, two per block."""
    out = np.empty(count, np.float64)
    fill(generator, out, 2, _doubles)
    return out
