"""STABLEHLO_CUSTOM_CALL: a call of code outside of the model, which only its compiler knows; it is refused."""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.schema.stablehlo_options import StablehloCustomCallOptions


def prepare(context: Context, node: Node) -> None:
    target = node.options(StablehloCustomCallOptions).call_target_name or ""
    ensure(
        False,
        f"it calls '{target}', which is not part of the model. Install a package that brings a kernel of "
        "STABLEHLO_CUSTOM_CALL for this target, or export the model without custom calls.",
    )


REGISTRATION = Registration(
    prepare=prepare,
    invoke=prepare,
    differences="always refused, with the name of what it calls; LiteRT has no kernel of it",
)
