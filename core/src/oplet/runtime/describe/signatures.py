"""The signatures of a model: the names that a subgraph's inputs and outputs have for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oplet.errors import SignatureError
from oplet.model.verify.signatures import named_tensors, stale_names
from oplet.schema.naming import shown

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.schema import tables

__all__ = ["Roles", "ensure_usable", "signatures_of", "subgraph_of"]

#: The tensor indices of one signature: `{"inputs": {name: index}, "outputs": {name: index}}`.
Roles = dict[str, dict[str, int]]


def signatures_of(model: Model) -> dict[str, Roles]:
    """Return the tensor indices of each signature, by its key, in the model's order."""
    found: dict[str, Roles] = {}
    for signature in model.lazy_root.signature_defs or []:
        names = {"inputs": named_tensors(signature.inputs), "outputs": named_tensors(signature.outputs)}
        found.setdefault(signature.signature_key or "", names)
    return found


def subgraph_of(model: Model, key: str) -> int:
    """Return the index of the subgraph that a signature runs."""
    return _signature(model, key).subgraph_index


def _signature(model: Model, key: str) -> tables.SignatureDef:
    return next(s for s in model.lazy_root.signature_defs or [] if s.signature_key == key)


def ensure_usable(model: Model, key: str) -> None:
    """Refuse a signature that names tensors which its subgraph does not have.

    Raises:
        SignatureError: it does, in LiteRT's words.
    """
    signature = _signature(model, key)
    count = len((model.lazy_root.subgraphs or [])[signature.subgraph_index].tensors or [])
    if stale := stale_names(signature, count):
        index = max(*named_tensors(signature.inputs).values(), *named_tensors(signature.outputs).values(), 0)
        raise SignatureError(
            f"Invalid tensor index {index} exceeds max tensor index {count}. Signature '{shown(key)}' of "
            f"{model.name} has {' and '.join(stale)}; a tool that changed the model has left it behind. Use the model "
            "without signatures, or convert it again."
        )
