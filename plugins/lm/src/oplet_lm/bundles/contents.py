"""What is in a bundle, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oplet_lm.bundles.bundle import Bundle
from oplet_lm.bundles.metadata import Token
from oplet_lm.bundles.sections import LITERTLM, TASK

__all__ = ["contents"]


def contents(path: str) -> Mapping[str, Any] | None:
    """Return what is in a bundle; None for a file of another kind.

    Returns:
        "kind", the format; "about", further facts by name; "parts", a list of (name, kind, number of bytes); "models", open `Model`s
        by name.

    Raises:
        ModelError: the bundle is damaged.
    """
    with open(path, "rb") as file:
        head = file.read(len(LITERTLM))
    if head != LITERTLM and not head.startswith(TASK):
        return None
    bundle = Bundle(path)
    if head != LITERTLM and not bundle.models:  # any other zip archive
        return None
    parts = [(each.model_type or each.kind, each.kind, each.end - each.begin) for each in bundle.sections]
    models = {name: bundle.model(name) for name in bundle.models}
    return {"kind": bundle.kind, "about": _about(bundle), "parts": parts, "models": models}


def _about(bundle: Bundle) -> dict[str, Any]:
    if bundle.find("LlmMetadataProto") is None:
        return {}
    found = bundle.metadata()
    sampling = found.sampling
    told = {
        "tokens of context": found.most_tokens,
        "start token": found.start and _shown(found.start),
        "stop tokens": ", ".join(map(_shown, found.stops[:50])),
        "sampling": f"top_k {sampling.top_k}, top_p {sampling.top_p:.6g}, temperature {sampling.temperature:.6g}",
        "chat template": found.template or ", ".join(f"{role}: {around}" for role, around in found.affixes.items()),
    }
    return {what: value for what, value in told.items() if value}


def _shown(token: Token) -> str:
    return repr(token) if isinstance(token, str) else " ".join(map(str, token))
