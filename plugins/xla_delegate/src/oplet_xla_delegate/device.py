"""The device, what is on it, and XLA's compiler: one of each for the process."""

from __future__ import annotations

import hashlib
import importlib
import logging
import threading
import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakValueDictionary

import jax
import numpy as np
from jax.experimental.compilation_cache import compilation_cache
from numpy.typing import NDArray

from oplet import CacheFolder

__all__ = ["Device", "Executable", "logger", "wide_types"]

logger = logging.getLogger("oplet.delegates.xla")

#: The most bytes that compiled functions may take on disk; the oldest are removed.
_MOST_BYTES = 2 << 30
_KINDS = ("auto", "cpu", "gpu", "tpu")
#: Of jaxlib 0.10.2, a fusion on CPUs that gives wrong numbers for an addition after a border and a pool.
_CPU_OPTIONS = {"xla_cpu_experimental_ynn_fusion_type": ""}

_lock = threading.Lock()
_executables: WeakValueDictionary[str, Executable] = WeakValueDictionary()
_latest: deque[Executable] = deque(maxlen=32)  # stay for the next interpreter when the one that they were made for is gone
_weights: WeakValueDictionary[tuple[Any, ...], jax.Array] = WeakValueDictionary()


class Executable:
    """A compiled function, shared by all partitions in the process that compute the same.

    Attributes:
        run: the compiled function.
        nbytes: the bytes of its results and temporary memory.
        flops: the number of floating-point operations of a call.
        seconds: the time to compile it.
        checked: whether its outputs were compared with those of oplet's kernels.
    """

    def __init__(self, run: Any, seconds: float) -> None:
        self.run = run
        self.seconds = seconds
        self.checked = False
        memory = run.memory_analysis()
        self.nbytes = int(memory.temp_size_in_bytes + memory.output_size_in_bytes) if memory is not None else 0
        cost = run.cost_analysis()
        cost = cost[0] if isinstance(cost, list) else cost
        self.flops = float((cost or {}).get("flops", 0.0))


def wide_types(wide: bool) -> AbstractContextManager[Any]:
    """Return a context manager in which jax has 64-bit types if `wide`; otherwise they become 32-bit types."""
    if not wide:
        return nullcontext()
    home = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")  # its place in earlier releases
    context: AbstractContextManager[Any] = home.enable_x64(True)
    return context


class Device:
    """One of jax's devices.

    Args:
        text: "cpu", "gpu", "tpu" or "auto", with ":index" for one that is not the first, as "gpu:1".

    Raises:
        ValueError: there is no such device.
    """

    def __init__(self, text: str) -> None:
        kind, _, number = text.lower().partition(":")
        if kind not in _KINDS or (number and not number.isdecimal()):
            raise ValueError(f"device={text} is none of {', '.join(_KINDS)}, also with :index, as gpu:1.")
        try:
            found = jax.devices(None if kind == "auto" else kind)
        except RuntimeError as error:
            here = ", ".join(dict.fromkeys(device.platform for device in jax.devices()))
            raise ValueError(f"device={text} is not there: on this machine jax finds {here}.") from error
        if int(number or 0) >= len(found):
            raise ValueError(f"device={text} is not there: jax finds {len(found)} of its kind.")
        self.jax = found[int(number or 0)]
        self.platform = {"cuda": "gpu", "rocm": "gpu"}.get(self.jax.platform, self.jax.platform)

    def __str__(self) -> str:
        return f"{self.platform}:{self.jax.id} ({self.jax.device_kind})"

    def put(self, array: Any) -> Any:
        """Copy an array to the device; memory that the runtime will overwrite is never shared."""
        return jax.device_put(array, self.jax, may_alias=False)

    def weight(self, array: NDArray[Any]) -> Any:
        """Return a constant as an array on the device; equal constants of all interpreters in the process share one."""
        content = np.ascontiguousarray(array)
        digest = hashlib.blake2b(content.view(np.uint8).data if content.size else b"", digest_size=20).digest()
        key = (self.jax, content.dtype.name, array.shape, digest)
        with _lock:
            found = _weights.get(key)
            if found is None:
                found = _weights[key] = self.put(content.reshape(array.shape))
        return found

    def compile(self, lowered: Any) -> Executable:
        """Compile a lowered jax function; a function that was compiled for the device before is returned again."""
        text = lowered.as_text()
        key = hashlib.blake2b(f"{self.jax} {lowered.in_tree} {text}".encode(), digest_size=20).hexdigest()
        with _lock:
            found = _executables.get(key)
        if found is None:
            _keep_on_disk()
            logger.info("Compiling a function of %d lines for %s; large ones take seconds to minutes.", text.count("\n"), self)
            start = time.perf_counter()
            found = Executable(self._compiled(lowered), time.perf_counter() - start)
            logger.info("Compiled a function of %d lines for %s in %.2f s.", text.count("\n"), self, found.seconds)
            with _lock:
                found = _executables.setdefault(key, found)
                _latest.append(found)
        return found

    def _compiled(self, lowered: Any) -> Any:
        if self.platform == "cpu":
            try:
                return lowered.compile(compiler_options=_CPU_OPTIONS)
            except Exception as error:
                if "xla_cpu_experimental_ynn_fusion_type" not in str(error):
                    raise  # else it is of a jaxlib that has no such fusion
        return lowered.compile()


def _keep_on_disk() -> None:
    """Let jax keep what takes it long to compile in oplet's cache folder, unless the program has given it another."""
    if jax.config.jax_compilation_cache_dir is not None or not jax.config.jax_enable_compilation_cache:
        return
    folder = CacheFolder("xla")
    if not folder.path:
        return
    try:
        folder.make()
    except OSError as error:
        logger.debug("Compiled functions are not kept on disk: %s", error)
        return
    folder.keep_newest("", "", most=4096, most_bytes=_MOST_BYTES)
    jax.config.update("jax_compilation_cache_dir", folder.path)
    compilation_cache.reset_cache()  # else what was decided before the folder was known stays
