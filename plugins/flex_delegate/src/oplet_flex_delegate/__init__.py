"""The delegate that runs TensorFlow's operators in TensorFlow.

TensorFlow is imported when a model has a node for it.
"""

from __future__ import annotations

from oplet import DelegateRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_delegates(registry: DelegateRegistry) -> None:
    """Offer the delegate under the name `flex`."""
    registry.add("flex", f"{__name__}.delegate:FlexDelegate")
