"""Compiled random generators, bit for bit as in `oplet_builtin_ops.control.philox`: Philox4x32-10 and Threefry2x32-20."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, NodeLimits, Registration, decline
from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.team import ready

__all__ = ["PHILOX_BITS", "THREEFRY_BITS", "UNIFORM", "WORDS", "drawing_registration"]

_MASK, _HALF, _ONE = (np.uint64(value) for value in (0xFFFFFFFF, 32, 1))
_F0, _F1, _W0, _W1 = (np.uint64(value) for value in (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85))
_PARITY, _MANTISSA, _UNIT = np.uint64(0x1BD11BDA), np.uint64(0x7FFFFF), np.float32(2.0**-23)

_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)


@_inlined
def _block(k0, k1, c0, c1, c2, c3):  # type: ignore[no-untyped-def]
    """Compute one Philox4x32-10 block of four words from two words of key and four of counter, all 32 bits in uint64."""
    for _ in range(10):
        p0, p1 = _F0 * c0, _F1 * c2
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _MASK, (p0 >> _HALF) ^ c3 ^ k1, p0 & _MASK
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return c0, c1, c2, c3


@_inlined
def _next(state):  # type: ignore[no-untyped-def]
    """Return the next Philox block of a stream, and advance the stream; `state` is its key and the lower and upper half of its
    counter.
    """
    key, low, high = state[0], state[1], state[2]
    state[1] = low + _ONE
    if state[1] == np.uint64(0):
        state[2] = high + _ONE
    return _block(key & _MASK, key >> _HALF, low & _MASK, low >> _HALF, high & _MASK, high >> _HALF)


@_inlined
def _uniform(word):  # type: ignore[no-untyped-def]
    # 23 bits, as the mantissa of a number in [1, 2) from which 1 is subtracted: all of that is exact.
    return np.float32(np.int64(word & _MANTISSA)) * _UNIT


@kernel("void(u8[::1], f4[::1])")
def UNIFORM(state, out):  # type: ignore[no-untyped-def]
    """Fill `out` with floats in [0, 1) from a Philox stream, and advance it; what is left of the last block of four words is
    dropped.

    `state` is the stream's key and the lower and upper half of its counter.
    """
    size = out.size
    for start in range(0, size, 4):
        a, b, c, d = _next(state)
        out[start] = _uniform(a)
        if start + 1 < size:
            out[start + 1] = _uniform(b)
        if start + 2 < size:
            out[start + 2] = _uniform(c)
        if start + 3 < size:
            out[start + 3] = _uniform(d)


@kernel("void(u8[::1], u4[::1])")
def WORDS(state, out):  # type: ignore[no-untyped-def]
    """Fill `out`, whose size is a multiple of four, with the next words of a Philox stream, and advance it.

    `state` is the stream's key and the lower and upper half of its counter.
    """
    for start in range(0, out.size, 4):
        out[start], out[start + 1], out[start + 2], out[start + 3] = _next(state)


@kernel("void(u8[::1], u8[::1], u4[::1])")
def PHILOX_BITS(state, after, out):  # type: ignore[no-untyped-def]
    """Fill `out` with words of STABLEHLO_RNG_BIT_GENERATOR's Philox, and write the state after them into `after`.

    `state` is the key, the lower half of the counter and, if it has a third number, the upper half; without that the key serves
    for it.
    """
    key, counter = state[0], state[1]
    last = state[2] if state.size == 3 else state[0]
    size = out.size
    blocks = (size + 3) // 4
    for number in range(blocks):
        at = counter + np.uint64(number)
        words = _block(key & _MASK, key >> _HALF, at & _MASK, at >> _HALF, last & _MASK, last >> _HALF)
        for place in range(min(4, size - 4 * number)):
            out[4 * number + place] = words[place]
    for place in range(state.size):
        after[place] = state[place]
    after[1] = counter + np.uint64(blocks)


@_inlined
def _turned(c0, c1, rotation):  # type: ignore[no-untyped-def]
    c0 = (c0 + c1) & _MASK
    return c0, (((c1 << rotation) | (c1 >> (_HALF - rotation))) & _MASK) ^ c0


@_inlined
def _rotation(step, number):  # type: ignore[no-untyped-def]
    if step % 2 == 0:
        return np.uint64(13 if number == 0 else 15 if number == 1 else 26 if number == 2 else 6)
    return np.uint64(17 if number == 0 else 29 if number == 1 else 16 if number == 2 else 24)


@kernel("void(u8[::1], u8[::1], u4[::1])")
def THREEFRY_BITS(state, after, out):  # type: ignore[no-untyped-def]
    """Fill `out` with words of STABLEHLO_RNG_BIT_GENERATOR's Threefry, and write the state after them into `after`.

    `state` is the key and the counter; a block has two words.
    """
    k0, k1, counter = state[0] & _MASK, state[0] >> _HALF, state[1]
    k2 = k0 ^ k1 ^ _PARITY
    size = out.size
    blocks = (size + 1) // 2
    for number in range(blocks):
        at = counter + np.uint64(number)
        c0, c1 = ((at & _MASK) + k0) & _MASK, ((at >> _HALF) + k1) & _MASK
        for step in range(5):
            for turn in range(4):
                c0, c1 = _turned(c0, c1, _rotation(step, turn))
            place = (step + 1) % 3
            first = k0 if place == 0 else k1 if place == 1 else k2
            second = k1 if place == 0 else k2 if place == 1 else k0
            c0 = (c0 + first) & _MASK
            c1 = (c1 + second + np.uint64(step + 1)) & _MASK
        out[2 * number] = c0
        if 2 * number + 1 < size:
            out[2 * number + 1] = c1
    for place in range(state.size):
        after[place] = state[place]
    after[1] = counter + np.uint64(blocks)


def _draw(state: tuple[int, int, int], blocks: int) -> NDArray[np.uint32]:
    """Return the words of the next `blocks` Philox blocks of a stream as a flat array; `state` is key, lower and upper half of
    the counter.
    """
    words = np.empty(4 * blocks, np.uint32)
    WORDS.compiled()(np.array(state, np.uint64), words)
    return words


def drawing_registration(builtin: Registration) -> Registration:
    """Build the registration of an op that runs numpy's kernel, but with random bits that compiled code generates."""
    bind_numpys = builtin.bind

    def plan(context: Context, node: Node) -> Bind:
        stream = node.prepared
        if bind_numpys is None:
            decline("it has no numpy kernel.")
        ready(WORDS)

        def bind() -> Thunk:
            stream.draw_by(_draw)
            bound, node.prepared = node.prepared, stream
            try:
                return bind_numpys(context, node)
            finally:
                node.prepared = bound

        return bind

    return override(builtin, plan, NodeLimits())
