"""Errors that name the node they concern, made from what its kernel raised."""

from __future__ import annotations

from collections.abc import Sequence

from oplet.errors import LimitError, OpletError, PrepareError, text_of
from oplet.ops.context import Declined, EnsureError, Node
from oplet.ops.tensor import Tensor
from oplet.schema.enums import BuiltinOperator
from oplet.texts import shown

__all__ = ["node_error"]

#: The most characters of a reason, and the most tensors that are named.
_LONGEST, _LISTED = 1600, 8


def node_error(cls: type[OpletError], node: Node, error: BaseException, what: str, where: str) -> OpletError:
    """Return an error that says what a kernel raised, and names the node, its tensors and the kernel's package.

    Args:
        cls: the class of the result; an error that already is of a class of oplet.errors keeps its class.
        node: the node.
        error: the exception that the kernel raised.
        what: the failure in words, such as "failed to prepare".
        where: the subgraph and the model, in words.
    """
    if isinstance(error, OpletError) and not isinstance(error, EnsureError):
        cls = type(error) if type(error).__module__ == OpletError.__module__ else cls
    reason = str(error) if isinstance(error, OpletError) else text_of(error, named=True)
    if isinstance(error, MemoryError):
        cls, reason = LimitError, f"There is not enough memory: {text_of(error)}"
    origin = "" if isinstance(error, Declined) else _origin(node)
    if len(reason) > _LONGEST:  # nested calls of subgraphs repeat the reasons of inner nodes
        reason = f"{reason[: _LONGEST // 2]} [...] {reason[-_LONGEST // 2 :]}"
    reads = _listed([tensor for tensor in node.inputs if tensor is not None])
    writes = _listed(node.outputs)
    name = f"{shown(node.op_name)} {shown(node.composite_name)}" if node.composite_name else shown(node.op_name)
    name += f" of the composite {shown(node.origin)}" if node.origin else ""
    found = cls(
        f"{reason.rstrip('.')}. Node number {node.index} ({name}) {what}{origin}: it reads {reads} and writes {writes} "
        f"in {where}.{_without_options(node) if issubclass(cls, PrepareError) else ''}"
    )
    found.node = node.index, node.op_name, node.version
    return found


def _origin(node: Node) -> str:
    """Return the package whose kernel failed, as " in the kernel of ..."; "" for a node without a kernel."""
    if node.delegate is not None:
        provenance = node.delegate.provenance
        package = f" of {provenance}" if provenance.distribution else ""
        return f" in the kernel of the delegate {shown(node.delegate.name)}{package}"
    return "" if node.registration is None else f" in the kernel of {node.registration.provenance}"


def _listed(tensors: Sequence[Tensor]) -> str:
    names = ", ".join(map(str, tensors[:_LISTED])) or "nothing"
    return names if len(tensors) <= _LISTED else f"{names} and {len(tensors) - _LISTED} more"


def _without_options(node: Node) -> str:
    """Return a hint for a node without an options table, as the refused value may be the field's default; else ""."""
    if node.raw_options is not None or node.op in (BuiltinOperator.CUSTOM, BuiltinOperator.DELEGATE):
        return ""
    from oplet.model.builders.operator_options import options_class  # a model that runs does not need it

    wanted = options_class(node.op)
    return (
        f" The model gives it no {wanted.__name__}, so that their defaults hold." if wanted is not None and wanted.fields else ""
    )
