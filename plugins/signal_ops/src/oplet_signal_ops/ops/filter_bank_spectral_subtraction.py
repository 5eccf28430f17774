"""SignalFilterBankSpectralSubtraction: subtracts each channel's estimated noise; also returns the estimate.

The node keeps the estimates: means of what came before, in which the latest value counts with the option `smoothing` (in odd
channels `alternate_smoothing`).

Numerics: signal/src/filter_bank_spectral_subtraction.cc of tflite-micro, which is unsigned arithmetic that wraps around.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import flag, integer
from oplet_signal_ops.nodes import AT_ONCE, add_state


def prepare(context: Context, node: Node) -> None:
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


def bind(context: Context, node: Node) -> Thunk:
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


REGISTRATION = Registration(prepare=prepare, bind=bind, types=(TensorType.UINT32,))
