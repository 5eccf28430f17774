"""Verification of signatures, and descriptions of signatures that cannot be used although the model runs.

Tools that rewrite models leave signatures behind that name tensors which no longer exist. LiteRT runs such models, and refuses the
signature when it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.naming import shown

if TYPE_CHECKING:
    from oplet.model.model import Model

__all__ = ["named_tensors", "signature_faults", "stale_names", "verify_signatures"]


def verify_signatures(root: tables.Model) -> None:
    """Check the rules of signatures that, when broken, make LiteRT refuse the model or crash.

    Raises:
        ModelError: a signature has no key, or belongs to no subgraph.
    """
    count = len(root.subgraphs or [])
    for signature in root.signature_defs or []:
        key = signature.signature_key
        if key is None:
            raise ModelError("Missing exported method name for SignatureDef. A signature of the model has no key.")
        if signature.subgraph_index >= count:
            raise ModelError(f"Signature '{shown(key)}' refers to subgraph {signature.subgraph_index}; the model has {count}.")


def named_tensors(entries: Sequence[tables.TensorMap] | None) -> dict[str, int]:
    """Map the names in a signature to tensor indices, sorted by name. Entries without a name are ignored; of equal names the last
    one counts.
    """
    found = {entry.name: entry.tensor_index for entry in entries or [] if entry.name is not None}
    return dict(sorted(found.items()))


def stale_names(signature: tables.SignatureDef, tensors: int) -> list[str]:
    """Describe the entries of a signature that name tensors which its subgraph does not have.

    Args:
        tensors: the number of tensors of the subgraph.
    """
    return [
        f"its {role} '{shown(name)}' at tensor {index}"
        for role, entries in (("input", signature.inputs), ("output", signature.outputs))
        for name, index in named_tensors(entries).items()
        if index >= tensors
    ]


def signature_faults(model: Model) -> Iterator[str]:
    """Yield a sentence on each signature that cannot be used, with the reason."""
    seen: set[str] = set()
    subgraphs = model.lazy_root.subgraphs or []
    for signature in model.lazy_root.signature_defs or []:
        key = signature.signature_key or ""
        if key in seen:
            yield f"There are two signatures '{shown(key)}', of which the first counts."
        seen.add(key)
        tensors = len(subgraphs[signature.subgraph_index].tensors or [])
        if stale := stale_names(signature, tensors):
            yield (
                f"Signature '{shown(key)}' has {' and '.join(stale)}, and its subgraph has {tensors} tensors: it cannot be run, the "
                "rest of the model can."
            )
        for role, entries in (("inputs", signature.inputs), ("outputs", signature.outputs)):
            names = [entry.name for entry in entries or []]
            if None in names:
                yield f"Signature '{shown(key)}' has {role} without a name, which nobody can ask for."
            for name, count in Counter(name for name in names if name is not None).items():
                if count > 1:
                    yield f"Signature '{shown(key)}' has {count} {role} called '{shown(name)}', of which the last counts."
