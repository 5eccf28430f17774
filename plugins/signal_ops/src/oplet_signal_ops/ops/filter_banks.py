"""Filter banks: energies of bands, their roots, logarithms, and less noise.

SignalFilterBank: sums a spectrum's energies over overlapping bands, as uint64.

Every frequency of band i counts for channel i with its weight and for channel i + 1 with its unweight. There is one more band
than channels: band 0 counts for channel 1 only, which is the first. Sums wrap around at 64 bits.

Numerics: signal/src/filter_bank.cc of tflite-micro.

SignalFilterBankSquareRoot: the square roots of uint64 energies, rounded to nearest, shifted right.

The second input says by how many bits to shift: those by which SignalFftAutoScale had scaled the signal up.

Numerics: signal/src/filter_bank_square_root.cc and square_root_*.cc of tflite-micro. Roots of values below 2^32 are not rounded
up beyond 16 bits (65535), roots of larger values not beyond 32 bits.

SignalFilterBankSpectralSubtraction: subtracts each channel's estimated noise; also returns the estimate.

The node keeps the estimates: means of what came before, in which the latest value counts with the option `smoothing` (in odd
channels `alternate_smoothing`).

Numerics: signal/src/filter_bank_spectral_subtraction.cc of tflite-micro, which is unsigned arithmetic that wraps around.

SignalFilterBankLog: natural logarithms in fixed point, limited to int16.

The input is first shifted left by the option `input_correction_bits`; the logarithm is multiplied by `output_scale`. Inputs of
0 and 1 give 0.

Numerics: signal/src/filter_bank_log.cc and log.cc of tflite-micro, in unsigned arithmetic of 32 bits that wraps around.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import flag, integer
from oplet_signal_ops.nodes import AT_ONCE, add_state

#: Of all bands together. A few bytes of widths could ask for any amount of work and memory.
_MOST_FREQUENCIES = 2**22


def prepare_bank(context: Context, node: Node) -> None:
    ensure_operands(node, 6, 1)
    energies, weights, unweights, *bands = node.inputs
    ensure_vector(energies, TensorType.UINT32)
    for tensor in (weights, unweights, *bands):
        ensure_vector(tensor, TensorType.INT16)
    ensure_type(node.outputs[0], TensorType.UINT64)
    ensure(weights.size == unweights.size, f"there must be as many weights {weights} as unweights {unweights}.")
    channels = integer(node.custom_map(), "num_channels")
    for tensor in bands:
        ensure(tensor.size > channels, f"{tensor} must have {channels + 1} values, one more than there are channels.")
    context.resize_tensor(node.outputs[0], (channels,))


def bind_bank(context: Context, node: Node) -> Thunk:
    energies, output = node.inputs[0].data, node.outputs[0].data
    bank = _Bank(node.inputs, output.size)
    layout_varies = not all(tensor.is_constant for tensor in node.inputs[1:])

    def run() -> None:
        if layout_varies:
            bank.arrange()
        bank.apply(energies, output)

    return run


class _Bank:
    def __init__(self, inputs: list[Tensor], channels: int) -> None:
        self._inputs = inputs
        self._channels = channels
        if all(tensor.is_constant for tensor in inputs[1:]):
            self.arrange()

    def arrange(self) -> None:
        """Lay out all bands end to end: each position's frequency and two weights, and each band's end."""
        energies, weights, unweights, *bands = self._inputs
        starts, weight_starts, widths = (tensor.data[: self._channels + 1].astype(np.intp) for tensor in bands)
        widths = np.maximum(widths, 0)
        ends = np.cumsum(widths)
        total = int(ends[-1])
        ensure(total <= _MOST_FREQUENCIES, f"the widths {bands[2]} sum up to {total}, more than {_MOST_FREQUENCIES}.")
        for begin, tensor, what in ((starts, energies, bands[0]), (weight_starts, weights, bands[1])):
            outside = np.flatnonzero((widths > 0) & ((begin < 0) | (begin + widths > tensor.size)))
            band = int(outside[0]) if outside.size else 0
            ensure(
                not outside.size,
                f"band {band} starts at {begin[band]} ({what}) and is {widths[band]} wide, which is not within {tensor}.",
            )
        within = np.arange(total) - np.repeat(ends - widths, widths)
        self._frequencies = np.repeat(starts, widths) + within
        at = np.repeat(weight_starts, widths) + within
        self._weights = np.stack((weights.data[at], unweights.data[at])).astype(np.int64).view(np.uint64)
        self._ends = ends
        self._sums = np.zeros((2, total + 1), np.uint64)

    def apply(self, energies: Array, output: Array) -> None:
        np.cumsum(self._weights * energies[self._frequencies], axis=1, out=self._sums[:, 1:])
        weighted, unweighted = np.diff(self._sums[:, self._ends], axis=1, prepend=np.uint64(0))
        np.add(weighted[1:], unweighted[:-1], output)


BANK = Registration(prepare=prepare_bank, bind=bind_bank, pure=True, types=(TensorType.UINT32,))


def prepare_root(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 1)
    (energies, scale_bits), output = node.inputs, node.outputs[0]
    ensure_vector(energies, TensorType.UINT64)
    ensure_type(scale_bits, TensorType.INT32)
    ensure(scale_bits.ndim == 0, f"{scale_bits} must be a scalar.")
    ensure_type(output, TensorType.UINT32)
    context.resize_tensor(output, energies.shape)


def bind_root(context: Context, node: Node) -> Thunk:
    energies, scale_bits, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data

    def run() -> None:
        bits = int(scale_bits)
        ensure(0 <= bits <= 31, f"the roots cannot be shifted right by {bits} bits ({node.inputs[1]}).")
        for start in range(0, len(energies), AT_ONCE):
            checkpoint()
            part = slice(start, start + AT_ONCE)
            np.right_shift(rounded_roots(energies[part]), bits, output[part], casting="unsafe")

    return run


def rounded_roots(values: Array) -> Array:
    """Return the square roots of uint64 values, rounded to nearest."""
    # The root of a double is one too large or too small where values have more than 53 bits.
    roots = np.minimum(np.sqrt(values.astype(np.float64)), 0xFFFFFFFF).astype(np.uint64)
    roots -= roots * roots > values
    rest = values - roots * roots
    larger = rest > 2 * roots
    roots += larger
    rest = values - roots * roots
    roots += (rest > roots) & (roots != np.where(values >> np.uint64(32), 0xFFFFFFFF, 0xFFFF))
    return roots


SQUARE_ROOT = Registration(prepare=prepare_root, bind=bind_root, pure=True, types=(TensorType.UINT64,))


def prepare_subtraction(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 2)
    signal = node.inputs[0]
    ensure_vector(signal, TensorType.UINT32)
    options = node.custom_map()
    channels = integer(options, "num_channels")
    ensure(signal.size == channels, f"{signal} must have the {channels} channels that the options name.")
    for output in node.outputs:
        ensure_type(output, TensorType.UINT32)
        context.resize_tensor(output, signal.shape)
    node.prepared = _Subtraction(options, channels), add_state(context, node, (channels,), TensorType.UINT32)


def bind_subtraction(context: Context, node: Node) -> Thunk:
    subtraction, state = node.prepared
    signal, estimate = node.inputs[0].data, state.data
    output, estimate_output = (tensor.data for tensor in node.outputs)

    def run() -> None:
        subtraction.apply(signal, estimate, output)
        np.copyto(estimate_output, estimate)

    return run


class _Subtraction:
    def __init__(self, options: dict[str, object], channels: int) -> None:
        self._smoothing_bits = np.uint32(integer(options, "smoothing_bits", most=31))
        self._bits = np.uint64(integer(options, "spectral_subtraction_bits", most=63))
        self._least = np.uint64(integer(options, "min_signal_remaining"))
        self._clamping = flag(options, "clamping")
        odd = np.arange(min(channels, AT_ONCE)) % 2  # of a part, all of which begin with an even channel
        self._of_new, self._of_old = (
            np.array([integer(options, key), integer(options, f"alternate_{key}")], np.uint64)[odd]
            for key in ("smoothing", "one_minus_smoothing")
        )

    def apply(self, signal: Array, estimate: Array, output: Array) -> None:
        for start in range(0, signal.size, AT_ONCE):
            checkpoint()
            part = slice(start, start + AT_ONCE)
            self._apply(signal[part], estimate[part], output[part])

    def _apply(self, signal: Array, estimate: Array, output: Array) -> None:
        scaled = signal << self._smoothing_bits
        mean = scaled * self._of_new[: signal.size] + estimate * self._of_old[: signal.size]
        mean >>= self._bits
        np.copyto(estimate, mean, casting="unsafe")
        noise = np.minimum(estimate, scaled)
        if self._clamping:
            np.copyto(estimate, noise)
        floor = np.multiply(signal, self._least, dtype=np.uint64) >> self._bits
        np.maximum((scaled - noise) >> self._smoothing_bits, floor.astype(np.uint32), out=output)


SPECTRAL_SUBTRACTION = Registration(prepare=prepare_subtraction, bind=bind_subtraction, types=(TensorType.UINT32,))


#: What log2(1 + x) - x is at x = 0, 1/128, ..., 1, with 16 bits behind the point.
_BULGE = np.round(65536 * (np.log2(1 + np.arange(129) / 128) - np.arange(129) / 128)).astype(np.int64)
_LN_2 = 45426
_HALF = 1 << 15


def prepare_log(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 1)
    values, output = node.inputs[0], node.outputs[0]
    ensure_vector(values, TensorType.UINT32)
    ensure_type(output, TensorType.INT16)
    options = node.custom_map()
    node.prepared = (
        integer(options, "input_correction_bits", most=31),
        integer(options, "output_scale", least=1),
    )
    context.resize_tensor(output, values.shape)


def bind_log(context: Context, node: Node) -> Thunk:
    correction_bits, scale = node.prepared
    values, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        for start in range(0, len(values), AT_ONCE):
            checkpoint()
            corrected = np.left_shift(values[start : start + AT_ONCE], np.uint32(correction_bits)).astype(np.int64)
            np.maximum(corrected, 1, out=corrected)  # the logarithm of 1 is the 0 that stands for 0 too
            part = output[start : start + AT_ONCE]
            np.minimum(scaled_logarithms(corrected, scale), 0x7FFF, out=part, casting="unsafe")

    return run


def scaled_logarithms(values: Array, scale: int) -> Array:
    """Compute ln(values) * scale for int64 values from 1 to 2^32 - 1, modulo 2^32."""
    exponents = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    # The 16 bits behind the leading one, by whose first 7 the table is read.
    fractions = ((values - (1 << exponents)) << 16) >> exponents
    segments = fractions >> 9
    slopes = _BULGE[segments + 1] - _BULGE[segments]
    # Interpolating takes a shift by 9, not by 16; so little is added within a segment that it looks like a step.
    log2 = (exponents << 16) + fractions + _BULGE[segments] + (slopes * (fractions & 0x1FF) >> 16)
    ln = (_LN_2 * log2 + _HALF) >> 16
    result: Array = ((scale * ln + _HALF) & 0xFFFFFFFF) >> 16
    return result


LOG = Registration(prepare=prepare_log, bind=bind_log, pure=True, types=(TensorType.UINT32,))
