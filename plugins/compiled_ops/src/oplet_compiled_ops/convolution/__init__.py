"""Convolutions and products with weights: filter layouts, register tiles, depthwise windows, output stages. They serve CONV_2D,
DEPTHWISE_CONV_2D, FULLY_CONNECTED and similar ops.

The kernels of tiles, windows and borders are declared here, and explained where their sources are.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from oplet_compiled_ops.library.kernels import Kernel, family_of

__all__ = [
    "FEWER_ROWS",
    "PAD_BATCHES",
    "RESCALING",
    "SCALED_ROWS",
    "any_taps_kernel",
    "pad_kernel",
    "product_kernel",
    "scaled_kernel",
    "taps_kernel",
]

#: The windows of a tile that may suit few windows better, by the usual number of the level's tiles.
FEWER_ROWS: Mapping[int, int] = MappingProxyType({6: 4, 8: 4, 10: 8, 12: 8})
#: The windows of a tile of `scaled_kernel`, where there is more than one.
SCALED_ROWS = 4
#: The arguments of kernels of depthwise windows but the first, and but those that a family adds.
_TAPS = f"f4[:,::1], i8[::1], {', '.join(['i8'] * 18)}, f4, f8, f8, f8"


product_kernel = family_of("convolution.tiles:product_kernel", lambda *_: f"void({', '.join(['i8'] * 16 + ['f8'] * 3)})")
scaled_kernel = family_of("convolution.tiles:scaled_kernel", lambda *_: f"void({', '.join(['i8'] * 21 + ['f8'] * 2)})")
taps_kernel = family_of("convolution.taps:taps_kernel", lambda source, *_: f"void({source}[:,::1], {_TAPS})")
any_taps_kernel = family_of(
    "convolution.taps:any_taps_kernel", lambda source, *_: f"void({source}[:,::1], {_TAPS}, i8, i8, i8, i8)"
)
pad_kernel = family_of(
    "convolution.input_padding:pad_kernel",
    lambda source: (
        f"void({source or 'u1'}[:,:,::1], {'f4' if source else 'u1'}[:,:,::1], i8, i8, i8, i8, {'f4' if source else 'u1, u1'})"
    ),
)
PAD_BATCHES = Kernel("convolution.input_padding:PAD_BATCHES", "void(u1[:,:,::1], u1[:,:,::1], i4[::1], i8, i8, i8, i8)")
RESCALING = Kernel(
    "convolution.thresholds:RESCALING",
    "void(i1[::1], i8, i8, i8, i8[:,::1], i8[::1], i8, i8, f8[::1], i8[::1], i8, f8, f8, f8[:,::1], i8[::1])",
)
