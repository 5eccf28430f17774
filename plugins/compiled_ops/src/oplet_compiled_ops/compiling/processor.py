"""Processor features on which the layouts of kernels' data depend, and the processor's identity (a part of the disk cache's
keys).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from contextlib import suppress

from oplet_compiled_ops.compiling.machine_code.description import description
from oplet_compiled_ops.compiling.machine_code.storage import fetch, store

__all__ = ["LANES", "has_byte_products", "has_masks", "identity", "pause_instruction", "tile_rows", "windows_together"]

#: The 32-bit numbers of the vectors that kernels are laid out for, which LLVM divides into the processor's registers.
LANES = 16
#: Descriptions of more processors than that are remembered by nobody.
_MOST = 16


@functools.cache
def identity() -> str:
    """Return a hash of the processor's description and of numba's CPU settings (NUMBA_CPU_NAME, NUMBA_CPU_FEATURES).

    Where the system gives no description, the features that LLVM detects stand in for it.
    """
    told = [os.environ.get("NUMBA_CPU_NAME", ""), os.environ.get("NUMBA_CPU_FEATURES", "")]
    text = "\n".join([platform.machine(), *told, description() or json.dumps(_measured(), sort_keys=True)])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@functools.cache
def _measured() -> dict[str, bool]:
    import llvmlite.binding as llvm

    return dict(llvm.get_host_cpu_features())


@functools.cache
def _features() -> dict[str, bool]:
    """Return LLVM's features of this processor, cached on disk since importing llvmlite is slow."""
    if not description():
        return _measured()
    name = f"processor-{identity()}"
    with suppress(ValueError):
        found = json.loads(fetch(name) or b"null")
        if isinstance(found, dict):
            return found
    features = _measured()
    store(name, json.dumps(features).encode(), _MOST)
    return features


def has_byte_products() -> bool:
    """Return whether the processor has dot products of bytes, 64 at a time (AVX-512 VNNI)."""
    features = _features()
    return bool(features.get("avx512vnni") and features.get("avx512bw") and features.get("avx512vl"))


def tile_rows() -> dict[int, int]:
    """Return how many rows (convolution windows) a tile of a matrix product has, by its number of vectors of 16 filters.

    So many sums just stay in the processor's registers. The keys are the numbers of vectors that tiles may have.
    """
    if _features().get("avx512f"):
        return {4: 6, 3: 8, 2: 10, 1: 12}
    return {1: 6}  # twelve of sixteen registers of 256 bits; a panel of two vectors would need more of them for its filters


def windows_together() -> int:
    """Return how many windows of a depthwise convolution are accumulated in registers at a time."""
    return 4 if _features().get("avx512f") else 2


def has_masks() -> bool:
    """Return whether masked loads and stores are as fast as whole ones (AVX-512)."""
    return bool(_features().get("avx512f"))


def pause_instruction() -> str:
    """Return the assembly instruction for spin-wait loops ("pause"); "" if the processor has none."""
    import llvmlite.binding as llvm

    machine = llvm.get_process_triple().partition("-")[0]
    return {"x86_64": "pause", "i686": "pause", "aarch64": "isb", "arm64": "isb"}.get(machine, "")
