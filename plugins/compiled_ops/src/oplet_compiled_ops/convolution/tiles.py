"""Tiled matrix product kernels: the sums of a tile (a few windows times a panel of filters) stay in registers up to the output.

Windows are read in place, as runs of consecutive values, without gathering patches (im2col); the output stage is applied before a
sum leaves its register. A panel is a few vectors of 16 filters, packed side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from oplet_compiled_ops.convolution import FEWER_ROWS, SCALED_ROWS
from oplet_compiled_ops.library import rounding
from oplet_compiled_ops.library.kernels import built_with
from oplet_compiled_ops.library.lazy import emitted
from oplet_compiled_ops.library.levels import LANES, has_byte_products, tile_rows

__all__ = ["product_kernel", "scaled_kernel", "scaled_tile", "tile"]

tile = emitted("tiles:tile")
scaled_tile = emitted("tiles:scaled_tile")


def _products() -> Iterator[tuple[int, int, bool, int, int]]:
    kinds = [(False, 8), (False, 16), *([(True, 8)] if has_byte_products() else [])]
    for vectors, most in tile_rows().items():
        for rows in sorted({1, FEWER_ROWS[most], most}):
            yield vectors, rows, False, 32, rounding.CLAMPED
            yield from ((vectors, rows, *kind, rounding.NEAREST) for kind in kinds)
            yield from ((vectors, rows, whole, 8, rounding.NEAREST_ABOVE) for whole, bits in kinds if bits == 8)
        for rows in (1, most):  # rare: without tiles of another size for few windows
            yield from ((vectors, rows, *kind, how) for kind, how in product(kinds, (rounding.FLOOR, rounding.AWAY)))


def _scaled() -> Iterator[tuple[int, int, bool, bool]]:
    if has_byte_products():
        yield from product(tile_rows(), (1, SCALED_ROWS), (False, True), (False, True))


@built_with(_products)
def product_kernel(vectors: int, rows: int, integer: bool, bits: int, rounding: int) -> Callable[..., Any]:
    """Build the kernel of a tiled product: the windows `first` to `last` times the panels `first_panel` to `last_panel` (both
    exclusive).

    Args:
        vectors: the vectors of 16 filters of a panel.
        rows: the windows of a tile.
        integer: whether bytes are multiplied, four to a 32-bit lane (AVX-512 VNNI); otherwise float32 numbers are.
        bits: the bits of an output: 32 for floats, 8 or 16 for integers.
        rounding: one of `library.rounding`'s constants.
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

    return product


@built_with(_scaled)
def scaled_kernel(vectors: int, rows: int, packed: bool, blocked: bool) -> Callable[..., Any]:
    """Build the kernel of a tiled product of run-time-quantized activations (bytes 0 to 255) and weights of 8 or 4 bits.

    It computes the windows `first` to `last` and the panels `first_panel` to `last_panel` (both exclusive), four byte products to
    a 32-bit lane (AVX-512 VNNI). The sum of a window and a filter, less the activations' zero point times the filter's sum, is
    exact. It is multiplied with the scale of the window's batch (`factors`, with zero points in `zeros`; `per` windows make a
    batch) times that of the filter; `in_turn` with one, then fused with the bias with the other, as XNNPACK does. `table` has three rows: the filters' scales, biases, and sums, which are int32.

    Args:
        vectors: the vectors of 16 filters of a panel.
        rows: the windows of a tile.
        packed: whether a byte of weights holds two of 4 bits: of eight consecutive values, the lower halves of four bytes are the
            first four.
        blocked: whether each run of packed weights (a block) has scales of its own. Then `marks` holds a 32-bit word for each run
            and filter: in its upper half that of a float32, a sixteenth of the scale; in its lower half the int16 sum of the
            weights.
    """
    two, several = int(packed), int(blocked)
    width = vectors * LANES

    # fmt: off
    def product(  # type: ignore[no-untyped-def]
        source, pixels, runs, run_count, run_length, weights, marks, table, channels, columns, output, row_bytes,
        zeros, factors, per, in_turn, first, last, first_panel, last_panel, block, low, high,
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
                        zeros, factors, per, in_turn, row, stop, low, high,
                    )  # fmt: skip

    return product
