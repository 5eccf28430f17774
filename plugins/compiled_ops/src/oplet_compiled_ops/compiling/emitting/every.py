"""All modules of intrinsics by name: where the placeholders in kernels ("module:name", see `compiling.lazy`) are looked up."""

from __future__ import annotations

from oplet_compiled_ops.compiling.emitting import atomics, bits, copying, reductions, resizing, taps, tiles, transposing, views

__all__ = ["MODULES"]

MODULES = {
    "atomics": atomics,
    "bits": bits,
    "copying": copying,
    "resizing": resizing,
    "reductions": reductions,
    "taps": taps,
    "tiles": tiles,
    "transposing": transposing,
    "views": views,
}
