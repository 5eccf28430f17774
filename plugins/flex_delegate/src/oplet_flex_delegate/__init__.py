"""The delegate that runs TensorFlow operators in TensorFlow, for models converted with `SELECT_TF_OPS`.

TensorFlow is imported when a model has a node for it. `delegate` claims nodes, `operation` is one operator, `kernel` runs a partition, and
`library` is the only module that knows TensorFlow's own modules; `dangers`, `served` and `sizes` say what is left alone.
"""

from __future__ import annotations

from oplet import DelegateRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_delegates(registry: DelegateRegistry) -> None:
    """Register the delegate `flex`; it is applied automatically if no kernel serves one of a model's Flex operators."""
    registry.add("flex", f"{__name__}.delegate:FlexDelegate", serves=("Flex*",))
