"""Lazy import of TensorFlow, announced in the log; all uses of TensorFlow's internal modules are here.

`tf.raw_ops` cannot run a NodeDef: its functions rename arguments (`reduction_indices` of Mean is `axis` there). What they call,
`tensorflow.python.eager.execute.execute`, takes an operator's name, its inputs and its attributes as a NodeDef has them, since TensorFlow 1.5.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from oplet.errors import PluginError, text_of

__all__ = ["cpu", "cpu_kernel", "executor", "is_loaded", "op_def", "reason_of", "tensorflow"]

logger = logging.getLogger("oplet.plugins")

_LOCK = threading.Lock()
_INSTALL = "pip install tensorflow-cpu"


def is_loaded() -> bool:
    """Return whether TensorFlow is already imported in the process."""
    return sys.modules.get("tensorflow") is not None


def tensorflow(num_threads: int = 0) -> Any:
    """Import the module `tensorflow` if necessary, and return it.

    Args:
        num_threads: the number of threads of an operator; 0 for TensorFlow's default. It has no effect after TensorFlow has run.

    Raises:
        PluginError: TensorFlow cannot be imported; the message says how to install it.
    """
    with _LOCK:
        if not is_loaded():
            # It logs at every start what none of its messages about a node needs.
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
            logger.warning("TensorFlow is imported for the model's Flex operators, which takes some seconds, once a process.")
        module = _imported()
        if isinstance(module, str):
            raise PluginError(module)
        if num_threads:
            _set_threads(module, num_threads)
        return module


@cache
def _imported() -> Any:
    """Import TensorFlow, or raise why that fails; a failed import is not retried in this process."""
    try:
        import tensorflow as module
    except Exception as error:  # a damaged installation raises whatever it likes
        missing = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "tensorflow"
        what = "is not installed" if missing else f"cannot be imported ({text_of(error, named=True)})"
        return f"TensorFlow, which runs Flex operators, {what}; install it: {_INSTALL}"
    return module


@cache
def _set_threads(module: Any, num_threads: int) -> None:
    config = module.config.threading
    if config.get_intra_op_parallelism_threads() == num_threads:
        return
    try:
        config.set_intra_op_parallelism_threads(num_threads)
    except RuntimeError:
        logger.warning(
            "TensorFlow was in use before, and keeps its number of threads; num_threads=%d has no effect on Flex operators.",
            num_threads,
        )


def executor() -> Callable[[bytes, int, Sequence[Any], tuple[Any, ...]], Sequence[Any]]:
    """Return the function that runs one operator eagerly: (name, number of outputs, inputs, flat attribute pairs)."""
    from tensorflow.python.eager import context, execute

    run, current = execute.execute, context.context()
    current.ensure_initialized()

    def executed(name: bytes, outputs: int, inputs: Sequence[Any], attributes: tuple[Any, ...]) -> Sequence[Any]:
        return run(name, outputs, inputs, attributes, current) or ()

    return executed


def cpu() -> AbstractContextManager[Any]:
    """Return a context manager in which operators run on the CPU, even if TensorFlow has other devices."""
    if _only_cpu():
        return nullcontext()
    scope: AbstractContextManager[Any] = tensorflow().device("CPU:0")
    return scope


@cache
def _only_cpu() -> bool:
    return all(device.device_type == "CPU" for device in tensorflow().config.list_logical_devices())


def cpu_kernel(op: str, attributes: Mapping[str, Any]) -> bool:
    """Return whether TensorFlow has a CPU kernel of the operator for these types.

    Args:
        attributes: the node's attributes by name, as AttrValue messages.
    """
    from tensorflow.python.framework import kernels

    def allows(constraint: Any) -> bool:
        value = attributes.get(constraint.name)
        if value is None:
            return True
        allowed = constraint.allowed_values.list
        if allowed.s:  # of a string, as GatherNd's bad_indices_policy
            return value.s in allowed.s
        given = list(value.list.type) if value.HasField("list") else [value.type]
        return set(given) <= set(allowed.type)

    found = kernels.get_registered_kernels_for_op(op).kernel
    return any(each.device_type in ("CPU", "DEFAULT") and all(map(allows, each.constraint)) for each in found)


def op_def(op: str) -> Any:
    """Return the OpDef of an operator; None if TensorFlow has none of that name."""
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(op)


def reason_of(error: BaseException) -> str:
    """Return the first line of a TensorFlow error's message, without the names of internal functions, nodes and devices."""
    try:
        text = (str(getattr(error, "message", "") or error).strip().splitlines() or [""])[0].strip()
    except Exception:  # bytes of the model that are no text, in a message of its own
        text = ""
    if not text or isinstance(error, (KeyError, IndexError, AttributeError)):
        return text_of(error, named=True)
    while text.startswith("{{") and "}}" in text:
        text = text.partition("}}")[2].lstrip(" :")
    for end in (" [Op:", "; NodeDef: ", " for '{{node ", "\n"):
        text = text.partition(end)[0]
    return text.rstrip(" .") or type(error).__name__
