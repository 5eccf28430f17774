"""String fingerprints: the hashes by which TensorFlow assigns strings to buckets.

Algorithms: FarmHash's Fingerprint64 (farmhashna, G. Pike), MurmurHash64A (A. Appleby) with TensorFlow's seed, and SipHash-2-4
(J.-P. Aumasson, D. J. Bernstein).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from oplet.kernels.limits import paced

__all__ = ["farm_fingerprint", "murmur_hash", "sip_hash"]

_ALL = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_SEED = 0xDECAFCAFFE
#: Words between two looks at the clock.
_WORDS = 1024
_word = struct.Struct("<Q").unpack_from
_half = struct.Struct("<I").unpack_from


def farm_fingerprint(data: bytes) -> int:
    """Compute FarmHash's Fingerprint64, from 0 to 2**64 - 1."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data, size)
    if size <= 32:
        return _up_to_32(data, size)
    return _up_to_64(data, size) if size <= 64 else _longer(data, size)


def murmur_hash(data: bytes) -> int:
    """Compute MurmurHash64A with TensorFlow's seed, from 0 to 2**64 - 1."""
    multiplier, size = 0xC6A4A7935BD1E995, len(data)
    value = _SEED ^ (size * multiplier & _ALL)
    for at in paced(range(0, size - 7, 8), _WORDS):
        word = _word(data, at)[0] * multiplier & _ALL
        word = (word ^ word >> 47) * multiplier & _ALL
        value = (value ^ word) * multiplier & _ALL
    if size % 8:
        value = (value ^ int.from_bytes(data[size - size % 8 :], "little")) * multiplier & _ALL
    value = (value ^ value >> 47) * multiplier & _ALL
    return value ^ value >> 47


def sip_hash(key: tuple[int, int], data: bytes) -> int:
    """Compute SipHash-2-4 under a key of two 64-bit numbers, from 0 to 2**64 - 1."""
    k0, k1 = key[0] & _ALL, key[1] & _ALL
    state = (k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573)
    whole = len(data) - len(data) % 8
    for word in paced(_words(data, whole), _WORDS):
        v0, v1, v2, v3 = state
        v0, v1, v2, v3 = _sip_round(*_sip_round(v0, v1, v2, v3 ^ word))
        state = v0 ^ word, v1, v2, v3
    v0, v1, v2, v3 = state
    state = v0, v1, v2 ^ 255, v3
    for _ in range(4):
        state = _sip_round(*state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _words(data: bytes, whole: int) -> Iterator[int]:
    for at in range(0, whole, 8):
        yield _word(data, at)[0]
    yield (len(data) & 255) << 56 | int.from_bytes(data[whole:], "little")


def _sip_round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = v0 + v1 & _ALL
    v1 = _left(v1, 13) ^ v0
    v0 = _left(v0, 32)
    v2 = v2 + v3 & _ALL
    v3 = _left(v3, 16) ^ v2
    v0 = v0 + v3 & _ALL
    v3 = _left(v3, 21) ^ v0
    v2 = v2 + v1 & _ALL
    v1 = _left(v1, 17) ^ v2
    return v0, v1, _left(v2, 32), v3


def _left(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _ALL


def _right(value: int, bits: int) -> int:
    value &= _ALL
    return (value >> bits | value << 64 - bits) & _ALL


def _mix(value: int) -> int:
    value &= _ALL
    return value ^ value >> 47


def _join(u: int, v: int, multiplier: int) -> int:
    a = _mix((u ^ v) * multiplier)
    return _mix((v ^ a) * multiplier) * multiplier & _ALL


def _up_to_16(s: bytes, size: int) -> int:
    if size >= 8:
        multiplier = _K2 + size * 2
        a, b = _word(s, 0)[0] + _K2 & _ALL, _word(s, size - 8)[0]
        c = _right(b, 37) * multiplier + a & _ALL
        d = (_right(a, 25) + b) * multiplier & _ALL
        return _join(c, d, multiplier)
    if size >= 4:
        return _join(size + (_half(s, 0)[0] << 3), _half(s, size - 4)[0], _K2 + size * 2)
    if size:
        y, z = s[0] + (s[size >> 1] << 8), size + (s[size - 1] << 2)
        return _mix(y * _K2 ^ z * _K0) * _K2 & _ALL
    return _K2


def _up_to_32(s: bytes, size: int) -> int:
    multiplier = _K2 + size * 2
    a, b = _word(s, 0)[0] * _K1 & _ALL, _word(s, 8)[0]
    c, d = _word(s, size - 8)[0] * multiplier & _ALL, _word(s, size - 16)[0] * _K2 & _ALL
    return _join(_right(a + b, 43) + _right(c, 30) + d & _ALL, a + _right(b + _K2, 18) + c & _ALL, multiplier)


def _up_to_64(s: bytes, size: int) -> int:
    multiplier = _K2 + size * 2
    a, b = _word(s, 0)[0] * _K2 & _ALL, _word(s, 8)[0]
    c, d = _word(s, size - 8)[0] * multiplier & _ALL, _word(s, size - 16)[0] * _K2 & _ALL
    y = _right(a + b, 43) + _right(c, 30) + d & _ALL
    z = _join(y, a + _right(b + _K2, 18) + c & _ALL, multiplier)
    e, f = _word(s, 16)[0] * multiplier & _ALL, _word(s, 24)[0]
    g = (y + _word(s, size - 32)[0]) * multiplier & _ALL
    h = (z + _word(s, size - 24)[0]) * multiplier & _ALL
    return _join(_right(e + f, 43) + _right(g, 30) + h & _ALL, e + _right(f + a, 18) + g & _ALL, multiplier)


def _weak(s: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = struct.unpack_from("<4Q", s, at)
    a = a + w & _ALL
    b = _right(b + a + z, 21)
    c = a
    a = a + x + y & _ALL
    return a + z & _ALL, b + _right(a, 44) + c & _ALL


def _longer(s: bytes, size: int) -> int:
    x, y = 81, 81 * _K1 + 113 & _ALL
    z = _mix(y * _K2 + 113) * _K2 & _ALL
    v = w = (0, 0)
    x = x * _K2 + _word(s, 0)[0] & _ALL
    for at in paced(range(0, (size - 1) // 64 * 64, 64), _WORDS):
        x = _right(x + y + v[0] + _word(s, at + 8)[0], 37) * _K1 & _ALL
        y = _right(y + v[1] + _word(s, at + 48)[0], 42) * _K1 & _ALL
        x ^= w[1]
        y = y + v[0] + _word(s, at + 40)[0] & _ALL
        z = _right(z + w[0], 33) * _K1 & _ALL
        v = _weak(s, at, v[1] * _K1, x + w[0])
        w = _weak(s, at + 32, z + w[1], y + _word(s, at + 16)[0])
        x, z = z, x
    multiplier, at = _K1 + ((z & 255) << 1), size - 64
    w = w[0] + (size - 1 & 63), w[1]
    v = v[0] + w[0], v[1]
    w = w[0] + v[0], w[1]
    x = _right(x + y + v[0] + _word(s, at + 8)[0], 37) * multiplier & _ALL
    y = _right(y + v[1] + _word(s, at + 48)[0], 42) * multiplier & _ALL
    x ^= w[1] * 9 & _ALL
    y = y + v[0] * 9 + _word(s, at + 40)[0] & _ALL
    z = _right(z + w[0], 33) * multiplier & _ALL
    v = _weak(s, at, v[1] * multiplier, x + w[0])
    w = _weak(s, at + 32, z + w[1], y + _word(s, at + 16)[0])
    x, z = z, x
    return _join(_join(v[0], w[0], multiplier) + _mix(y) * _K0 + z & _ALL, _join(v[1], w[1], multiplier) + x & _ALL, multiplier)
