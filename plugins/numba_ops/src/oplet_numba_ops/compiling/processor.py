"""Features of the processor that the layout of kernels depends on."""

from __future__ import annotations

import functools

__all__ = ["has_byte_products", "pause_instruction", "tile_rows", "windows_together"]


@functools.cache
def _features() -> dict[str, bool]:
    import llvmlite.binding as llvm

    return dict(llvm.get_host_cpu_features())


def has_byte_products() -> bool:
    """Whether the processor has instructions for sums of products of bytes, 64 at a time (AVX-512 VNNI)."""
    features = _features()
    return bool(features.get("avx512vnni") and features.get("avx512bw") and features.get("avx512vl"))


def tile_rows() -> dict[int, int]:
    """The windows of a tile by its number of filter vectors, so that all sums stay in registers."""
    if _features().get("avx512f"):
        return {4: 6, 3: 8, 2: 10, 1: 12}
    return {2: 3, 1: 6}


def windows_together() -> int:
    """The number of windows of a depthwise convolution that are summed in registers at a time."""
    return 4 if _features().get("avx512f") else 2


def pause_instruction() -> str:
    """The assembly instruction of a spin-wait loop ("pause"); "" if the processor has none."""
    import llvmlite.binding as llvm

    machine = llvm.get_process_triple().partition("-")[0]
    return {"x86_64": "pause", "i686": "pause", "aarch64": "isb", "arm64": "isb"}.get(machine, "")
