"""The delegate `xla`: each partition is one function that XLA compiles for a GPU, a TPU or the CPU."""

from __future__ import annotations

from oplet import DelegateRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_delegates(registry: DelegateRegistry) -> None:
    """Register the delegate under the name `xla`; the delegate and jax are imported at first use."""
    registry.add("xla", f"{__name__}.delegate:XlaDelegate", accelerates={"gpu": {"device": "gpu"}})
