"""Tiled matrix product kernels: a tile of windows times a panel of filters stays in registers up to the output.

Windows are read in place, as runs of consecutive values, without gathering patches (im2col); the output stage is applied before a
sum leaves its register.
"""

from __future__ import annotations

from oplet_numba_ops.compiling.kernels import Kernel, family
from oplet_numba_ops.compiling.lazy import emitted
from oplet_numba_ops.compiling.processor import LANES

__all__ = ["product_kernel", "scaled_kernel", "scaled_tile", "tile"]


tile = emitted("tiles:tile")
scaled_tile = emitted("tiles:scaled_tile")


@family
def product_kernel(vectors: int, rows: int, integer: bool, bits: int, rounding: int) -> Kernel:
    """Build the kernel for panels of `vectors` filter vectors and tiles of `rows` windows.

    It computes windows `first` to `last` and panels `first_panel` to `last_panel`.

    Args:
        vectors: the vectors of a panel.
        rows: the windows of a tile.
        integer: whether bytes are multiplied, four to a lane (AVX-512 VNNI), or floats.
        bits: the bits of an output.
        rounding: one of `emitting.rounding`'s constants.
    """
    whole = int(integer)
    width = vectors * LANES
    size = bits // 8

    # fmt: off
    def product(  # type: ignore[no-untyped-def]
        source, pixels, runs, run_count, run_length, weights, table, channels, columns, output, row_bytes,
        first, last, first_panel, last_panel, block, low, high, zero,
    ):
        # fmt: on
        panel_bytes = run_count * run_length * width * 4
        for start in range(first, last, block):
            stop = min(last, start + block)
            for panel in range(first_panel, last_panel):
                channel = panel * width
                for row in range(start, stop, rows):
                    tile(
                        vectors, rows, whole, bits, rounding,
                        source, pixels, runs, run_count, run_length, weights + panel * panel_bytes,
                        table, channels, channel, columns - channel, output + channel * size, row_bytes,
                        row, stop, low, high, zero,
                    )  # fmt: skip

    return Kernel(product, f"void({', '.join(['i8'] * 16 + ['f8'] * 3)})")


@family
def scaled_kernel(vectors: int, rows: int, packed: bool, blocked: bool) -> Kernel:
    """Build the kernel for run-time-quantized activations (bytes 0 to 255) and 8-bit or 4-bit weights.

    It computes windows `first` to `last` and panels `first_panel` to `last_panel`; four products to a lane (AVX-512 VNNI). The sum of a
    window and a filter, less the activations' zero point times the filter's sum, is exact. It is multiplied with the product of the
    scales of the window's batch (`factors`; `zeros` are the zero points; `per` windows make a batch) and of the filter. The table has
    three rows: the filters' scales, biases, and sums, which are int32.

    Args:
        vectors: the vectors of a panel.
        rows: the windows of a tile.
        packed: whether a byte of weights holds two of 4 bits: the lower belongs to the first four of eight values.
        blocked: whether each run of packed weights has scales of its own: `marks` has for each run and filter the upper half of a float32,
            a sixteenth of the scale, over the sum of the filter's weights.
    """
    two, several = int(packed), int(blocked)
    width = vectors * LANES

    # fmt: off
    def product(  # type: ignore[no-untyped-def]
        source, pixels, runs, run_count, run_length, weights, marks, table, channels, columns, output, row_bytes,
        zeros, factors, per, first, last, first_panel, last_panel, block, low, high,
    ):
        # fmt: on
        panel_bytes = run_count * run_length * width * 4
        mark_bytes = run_count * width * 4
        for start in range(first, last, block):
            stop = min(last, start + block)
            for panel in range(first_panel, last_panel):
                channel = panel * width
                for row in range(start, stop, rows):
                    scaled_tile(
                        vectors, rows, two, several,
                        source, pixels, runs, run_count, run_length, weights + panel * panel_bytes, marks + panel * mark_bytes,
                        table, channels, channel, columns - channel, output + channel * 4, row_bytes,
                        zeros, factors, per, row, stop, low, high,
                    )  # fmt: skip

    return Kernel(product, f"void({', '.join(['i8'] * 20 + ['f8'] * 2)})")
