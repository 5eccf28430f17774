"""Serving of .tflite models by the Open Inference Protocol (KServe v2), over REST and gRPC, on MLServer.

`OpletRuntime` is the MLServer runtime; the command `oplet-serve` starts a server of a folder of models with everything bounded.

Example:
    >>> import json
    >>> settings = {"name": "digits", "implementation": "oplet_serve.OpletRuntime", "parameters": {"uri": "./digits.tflite"}}
    >>> text = json.dumps(settings)  # a model-settings.json for `mlserver start`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oplet_serve.runtime import OpletRuntime

__all__ = ["OpletRuntime"]


def __getattr__(name: str) -> object:
    """Return `OpletRuntime`, imported lazily: every program that runs a model imports this package, but few serve."""
    if name != "OpletRuntime":
        raise AttributeError(f"module 'oplet_serve' has no attribute {name!r}")
    from oplet_serve.runtime import OpletRuntime

    return OpletRuntime


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
