"""The custom operators of Coral's models, in numpy.

Each is one module of `oplet_coral_ops.ops`, which is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: The module of each operator; all are of version 1.
OPS: dict[str, str] = {"PosenetDecoderOp": "posenet_decoder"}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators with the resolver, under their custom-op names in models."""
    for name, module in OPS.items():
        resolver.add_custom(name, f"{__name__}.ops.{module}:REGISTRATION")
