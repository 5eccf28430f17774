"""The hooks of this package: it adds `oplet chat`, and opens bundles for `oplet inspect` and `oplet doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oplet import CommandRegistry, hookimpl

if TYPE_CHECKING:
    from oplet_lm.metadata import Metadata

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_commands(registry: CommandRegistry) -> None:
    """Add `oplet chat`."""
    registry.add("chat", "oplet_lm.chat:chat", "Talk to a language model in a .litertlm or .task bundle.")


@hookimpl
def open_bundle(path: str) -> Mapping[str, Any] | None:
    """Return what is in a `.litertlm` or `.task` file, as the hook has it; None for a file of another kind."""
    with open(path, "rb") as file:
        head = file.read(8)
    if head != b"LITERTLM" and not head.startswith(b"PK\x03\x04"):
        return None
    from oplet_lm.bundle import Bundle

    bundle = Bundle(path)
    if head.startswith(b"PK") and not bundle.models:  # any other zip archive
        return None
    parts = [(each.model_type or each.kind, each.kind, each.end - each.begin) for each in bundle.sections]
    about = {} if bundle.find("LlmMetadataProto") is None else _about(bundle.metadata())
    return {"kind": bundle.kind, "about": about, "parts": parts, "models": {name: bundle.model(name) for name in bundle.models}}


def _about(metadata: Metadata) -> dict[str, Any]:
    start, *stops = [each if isinstance(each, tuple) else (repr(each),) for each in (metadata.start or (), *metadata.stops[:50])]
    sampling = metadata.sampling
    told = {
        "tokens of context": metadata.most_tokens,
        "start token": " ".join(map(str, start)),
        "stop tokens": ", ".join(" ".join(map(str, each)) for each in stops),
        "sampling": f"top_k {sampling.top_k}, top_p {sampling.top_p:.6g}, temperature {sampling.temperature:.6g}",
        "chat template": metadata.template,
    }
    return {what: value for what, value in told.items() if value}
