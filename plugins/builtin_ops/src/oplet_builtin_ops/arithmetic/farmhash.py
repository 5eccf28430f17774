"""FarmHash's 64-bit fingerprint (farmhashna::Fingerprint64), the same on all machines and in all versions."""

from __future__ import annotations

from typing import Final

from oplet import checkpoint

__all__ = ["fingerprint64"]

#: A mask of positions: a checkpoint follows each time that its bits are 0.
_OFTEN: Final = (1 << 16) - 1

_MASK: Final = 2**64 - 1
_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F


def _rotate(value: int, shift: int) -> int:
    """Rotate a 64-bit value right by `shift` bits."""
    value &= _MASK
    return (value >> shift) | (value << (64 - shift)) & _MASK


def _mix(value: int) -> int:
    value &= _MASK
    return value ^ (value >> 47)


def _join(u: int, v: int, factor: int) -> int:
    """Mix two 64-bit hashes into one (FarmHash's HashLen16 with multiplier `factor`)."""
    u, v = u & _MASK, v & _MASK
    a = _mix((u ^ v) * factor)
    b = _mix((v ^ a) * factor)
    return (b * factor) & _MASK


def fingerprint64(data: bytes) -> int:
    """Return FarmHash's 64-bit fingerprint of `data`, an integer from 0 to 2**64 - 1."""
    length = len(data)
    if length <= 16:
        return _up_to_16(data, length)
    factor = _K2 + 2 * length
    if length <= 32:
        return _up_to_32(data, factor)
    if length <= 64:
        return _up_to_64(data, factor)
    return _long(data)


def _word(data: bytes, at: int, size: int = 8) -> int:
    """Read `size` bytes at position `at` as a little-endian unsigned integer; a negative position counts from the end."""
    start = at if at >= 0 else len(data) + at
    return int.from_bytes(data[start : start + size], "little")


def _up_to_16(data: bytes, length: int) -> int:
    factor = _K2 + 2 * length
    if length >= 8:
        a, b = _word(data, 0) + _K2, _word(data, -8)
        return _join(_rotate(b, 37) * factor + a, (_rotate(a, 25) + b) * factor, factor)
    if length >= 4:
        return _join(length + (_word(data, 0, 4) << 3), _word(data, -4, 4), factor)
    if length:
        y = data[0] + (data[length >> 1] << 8)
        z = length + (data[-1] << 2)
        return (_mix(y * _K2 ^ z * _K0) * _K2) & _MASK
    return _K2


def _up_to_32(data: bytes, factor: int) -> int:
    a, b = _word(data, 0) * _K1, _word(data, 8)
    c, d = _word(data, -8) * factor, _word(data, -16) * _K2
    return _join(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, factor)


def _up_to_64(data: bytes, factor: int) -> int:
    a, b = _word(data, 0) * _K2, _word(data, 8)
    c, d = _word(data, -8) * factor, _word(data, -16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _join(y, a + _rotate(b + _K2, 18) + c, factor)
    e, f = _word(data, 16) * factor, _word(data, 24)
    g, h = (y + _word(data, -32)) * factor, (z + _word(data, -24)) * factor
    return _join(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, factor)


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Hash 32 bytes at `at` with the seeds `a` and `b` into a pair of 64-bit hashes (FarmHash's WeakHashLen32WithSeeds)."""
    w, x, y, z = (_word(data, at + 8 * i) for i in range(4))
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    b += _rotate(a, 44)
    return (a + z) & _MASK, (b + c) & _MASK


State = tuple[int, int, int, tuple[int, int], tuple[int, int]]


def _block(data: bytes, at: int, state: State, factor: int, weight: int) -> State:
    """Return FarmHash's state after the 64-byte block at position `at` was mixed in."""
    x, y, z, v, w = state
    x = _rotate(x + y + v[0] + _word(data, at + 8), 37) * factor
    y = _rotate(y + v[1] + _word(data, at + 48), 42) * factor
    x = (x & _MASK) ^ (w[1] * weight & _MASK)
    y = (y + v[0] * weight + _word(data, at + 40)) & _MASK
    z = (_rotate(z + w[0], 33) * factor) & _MASK
    v = _weak(data, at, v[1] * factor, x + w[0])
    w = _weak(data, at + 32, z + w[1], y + _word(data, at + 16))
    return z, y, x, v, w


def _long(data: bytes) -> int:
    y = (81 * _K1 + 113) & _MASK
    z = (_mix(y * _K2 + 113) * _K2) & _MASK
    state: State = 81 * _K2 + _word(data, 0), y, z, (0, 0), (0, 0)
    # All full blocks but the last 1 to 64 bytes, and then the last 64, which may overlap.
    for at in range(0, (len(data) - 1) // 64 * 64, 64):
        if not at & _OFTEN:
            checkpoint()
        state = _block(data, at, state, _K1, 1)
    x, y, z, v, w = state
    factor = _K1 + ((z & 0xFF) << 1)
    first = w[0] + ((len(data) - 1) & 63)
    second = v[0] + first
    state = x, y, z, (second, v[1]), (first + second, w[1])
    x, y, z, v, w = _block(data, len(data) - 64, state, factor, 9)
    left = _join(v[0], w[0], factor) + _mix(y) * _K0 + z
    return _join(left, _join(v[1], w[1], factor) + x, factor)
