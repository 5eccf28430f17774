"""16-bit WAV audio. Format: tensorflow/core/lib/wav/wav_io.cc."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from oplet import Node, Tensor, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.dense import portions
from oplet_flex_ops.numerics.operator import operator, writing

_FLOAT32, _INT32, _STRING = TensorType.FLOAT32, TensorType.INT32, TensorType.STRING
#: Format tags: plain samples, and the one that has its true tag further back.
_PCM, _EXTENSIBLE = 1, 0xFFFE


def _samples(data: bytes) -> tuple[Array, int]:
    """Parse a WAV file; return int16 samples (samples, channels), and the sample rate."""
    ensure(
        len(data) >= 12 and data[:4] == b"RIFF" and data[8:12] == b"WAVE",
        "the contents are no WAV file: 'RIFF' and 'WAVE' are missing.",
    )
    at, channels, rate = 12, 0, 0
    while at + 8 <= len(data):
        checkpoint()
        name, size = struct.unpack_from("<4sI", data, at)
        at += 8
        if name == b"fmt ":
            ensure(size >= 16 and at + size <= len(data), f"the WAV file's format chunk of {size} bytes is too short or cut off.")
            tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, at)
            plain = tag in (_PCM, _EXTENSIBLE) and bits == 16
            ensure(plain, f"the WAV file has format {tag} with {bits} bits; format 1 with 16 bits is read.")
            ensure(channels > 0, "the WAV file has no channels.")
        elif name == b"data":
            ensure(channels, "the WAV file's samples come before their format.")
            ensure(at + size <= len(data), f"the WAV file states {size} bytes of samples, and {len(data) - at} follow.")
            count = size // (2 * channels)
            return np.frombuffer(data, "<i2", count * channels, at).reshape(count, channels), rate
        at += size + size % 2
    ensure(False, "the WAV file has no samples.")
    return np.zeros((0, 1), np.int16), 0


def _contents(tensor: Tensor) -> bytes:
    value = tensor.data.item()
    return value if isinstance(value, bytes) else bytes(value)


def _decode_wanted(attributes: Attributes, samples: int, channels: int) -> tuple[int, int]:
    count = attributes.integer("desired_samples", default=-1, least=-1)
    width = attributes.integer("desired_channels", default=-1, least=-1)
    return (samples if count == -1 else count), (channels if width == -1 else width)


def _decode_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure(node.inputs[0].size == 1, f"{node.inputs[0]} must hold one file.")
    return [_decode_wanted(attributes, *_samples(_contents(node.inputs[0]))[0].shape), ()]


@operator("STRING! -> FLOAT32, INT32", _decode_shapes)
@writing
def DECODEWAV(contents: Array, audio: Array, frequency: Array) -> None:
    """Decode float samples in [-1, 1] of shape (samples, channels), and the sample rate."""
    samples, rate = _samples(bytes(contents.item()))
    count = min(len(samples), len(audio))
    audio.fill(0)
    # Channels that the file does not have repeat its last one.
    source = np.minimum(np.arange(audio.shape[1]), samples.shape[1] - 1)
    np.divide(samples[:count, source], np.float32(32768), audio[:count])
    frequency[...] = rate


def _encode_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    audio, rate = node.inputs
    ensure(audio.ndim == 2, f"{audio} must have 2 dimensions, samples and channels.")
    ensure(0 < audio.shape[1] < 1 << 16, f"{audio} has {audio.shape[1]} channels; a file has 1 to 65535.")
    ensure(rate.size == 1, f"the sample rate {rate} must be one value.")
    return [()]


@operator("FLOAT32, INT32 -> STRING", _encode_shapes)
@writing
def ENCODEWAV(audio: Array, rate: Array, contents: Array) -> None:
    """Encode a WAV file from float samples in [-1, 1] of shape (samples, channels)."""
    frequency, width = rate.item(), 2 * audio.shape[1]
    ensure(frequency > 0, f"the sample rate is {frequency}; it must be above zero.")
    samples = np.empty(audio.shape, "<i2")
    for part in portions(audio.shape):
        scaled = audio[part] * np.float32(32768)
        rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)  # halves away from zero
        samples[part] = np.clip(rounded, -32768, 32767)
    size = samples.nbytes
    head = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, _PCM, audio.shape[1], frequency,
                       frequency * width & 0xFFFFFFFF, width, 16)  # fmt: skip
    contents[...] = b"".join((head, struct.pack("<4sI", b"data", size), samples.data))
