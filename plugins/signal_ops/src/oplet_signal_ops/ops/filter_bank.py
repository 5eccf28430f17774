"""SignalFilterBank: sums a spectrum's energies over overlapping bands, as uint64.

Every frequency of band i counts for channel i with its weight and for channel i + 1 with its unweight. There is one more band
than channels: band 0 counts for channel 1 only, which is the first. Sums wrap around at 64 bits.

Numerics: signal/src/filter_bank.cc of tflite-micro.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import integer

#: Of all bands together. A few bytes of widths could ask for any amount of work and memory.
_MOST_FREQUENCIES = 2**22


def prepare(context: Context, node: Node) -> None:
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


def bind(context: Context, node: Node) -> Thunk:
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


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.UINT32,))
