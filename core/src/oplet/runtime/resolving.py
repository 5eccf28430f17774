"""Resolving: every node gets its registration from the resolver, and errors name packages that serve the missing ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from oplet.errors import OpNotFoundError, OpVersionError, UnresolvedOpError, UnservedNodeError
from oplet.model.reachability import entry_subgraphs, named_subgraphs, reachable_subgraphs
from oplet.ops.context import Node
from oplet.schema.enums import BuiltinOperator
from oplet.texts import version_ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from oplet.ops.serving.registration import Registration
    from oplet.ops.serving.resolver import OpResolver
    from oplet.runtime.subgraph import Subgraph
    from oplet.schema import tables

__all__ = [
    "COMPOSITE_VERSION",
    "find_providers",
    "find_registration",
    "op_of",
    "resolve_nodes",
    "resolve_subgraphs",
    "running_nodes",
    "unresolved",
    "unserved_custom_ops",
    "unserved_op",
]


_GUIDE = "https://www.tensorflow.org/lite/guide/ops_custom"
_SELECT_GUIDE = "https://www.tensorflow.org/lite/guide/ops_select"


#: The version of STABLEHLO_COMPOSITE that is known; in another one the options may mean something else.
COMPOSITE_VERSION = 1
#: What `op_of` returns.
OpKey = tuple[BuiltinOperator, str, int, str, int]


def resolve_nodes(nodes: Iterable[Node], resolver: OpResolver, advice: Callable[[str], str], model: str) -> None:
    """Set each node's registration (its kernel). Custom ops that nothing serves keep None, as a delegate may claim them.

    Raises:
        OpNotFoundError: a built-in operator has no kernel at all.
        OpVersionError: a built-in operator has kernels, but not in this version.
        OpConflictError: two packages serve one op.

    The message of a missing built-in operator names all other ops that are missing too, custom ops included.
    """
    nodes = list(nodes)
    missing: dict[tuple[BuiltinOperator, int], list[int]] = {}
    found: dict[OpKey, Registration | None] = {}
    for node in nodes:
        key = op_of(node)
        if key not in found:
            found[key] = find_registration(node, resolver)
        node.registration = found[key]
        if node.registration is None and node.op is not BuiltinOperator.CUSTOM:
            missing.setdefault((node.op, node.version), []).append(node.index)
    if not missing:
        return
    sentences = [_too_new(op, version, indices, resolver) for (op, version), indices in missing.items() if resolver.versions(op)]
    sentences += _unserved([needed for needed in missing.items() if not resolver.versions(needed[0][0])], advice)
    open_ops = dict.fromkeys((n.op_name, n.version) for n in nodes if n.op is BuiltinOperator.CUSTOM and n.registration is None)
    sentences += _missing_customs(open_ops, resolver, advice)
    first_op, first_version = next(iter(missing))
    cls = OpVersionError if all(resolver.versions(op) for op, _ in missing) else OpNotFoundError
    raise cls(" ".join(sentences) + f" Registration failed. The model is {model}.", first_op.name, first_version)


def resolve_subgraphs(
    subgraphs: Sequence[Subgraph], root: tables.Model, resolver: OpResolver, advice: Callable[[str], str], model: str
) -> None:
    """Set the registrations (kernels) of the nodes of all subgraphs of a model; raises the errors of `resolve_nodes`.

    Subgraphs that nothing calls may lack kernels: a build for one model leaves them out.
    """
    live = reachable_subgraphs(root.subgraphs or (), entry_subgraphs(root))
    resolve_nodes([node for subgraph in subgraphs if subgraph.index in live for node in subgraph.nodes], resolver, advice, model)
    for node in (node for subgraph in subgraphs if subgraph.index not in live for node in subgraph.nodes):
        node.registration = find_registration(node, resolver)


def running_nodes(subgraphs: Sequence[Subgraph], start: int) -> Iterator[Node]:
    """Return the nodes that run when a subgraph does: those of its plan, and of the subgraphs that they call, recursively.

    Nodes that a delegate replaced are in no plan, and the subgraphs that they call are not followed.
    """
    seen, waiting = {start}, [start]
    while waiting:
        subgraph = subgraphs[waiting.pop(0)]
        for index in subgraph.execution_plan:
            node = subgraph.nodes[index]
            yield node
            called = {callee for callee in named_subgraphs(node.raw_options) if 0 <= callee < len(subgraphs)}
            waiting += sorted(called - seen)
            seen |= called


def find_registration(node: Node, resolver: OpResolver) -> Registration | None:
    """Return the registration that is first in the order of precedence for the node's op; None if there is none."""
    return next(find_providers(node, resolver), None)


def find_providers(node: Node, resolver: OpResolver) -> Iterator[Registration]:
    """Yield the registrations that serve the node's op, in the order of precedence; a composite's decomposition comes last."""
    *_, name, version = op_of(node)
    if name and node.version == COMPOSITE_VERSION:
        from oplet.ops.serving.provenance import Composite

        yield from resolver.candidates(Composite(name), version)
    yield from resolver.candidates(node.op_name if node.op is BuiltinOperator.CUSTOM else node.op, node.version)


def op_of(node: Node) -> OpKey:
    """Return the key by which a node's kernels are found: operator, name and version, and the same of a composite."""
    if node.op is not BuiltinOperator.STABLEHLO_COMPOSITE:
        return node.op, node.op_name, node.version, "", 0
    name = node.composite_name
    return node.op, node.op_name, node.version, name, node.composite_version if name else 0


# A missing op and a missing version have different messages; both keep words of LiteRT's single message, as users search for them.


def _unserved(missing: list[tuple[tuple[BuiltinOperator, int], list[int]]], advice: Callable[[str], str]) -> list[str]:
    """Return the sentences about built-in operators that nothing serves in any version, with the advice once for all of them."""
    if not missing:
        return []
    ((op, version), nodes), *others = missing
    sentences = [
        f"Didn't find op for builtin opcode '{op.name}' version '{version}'. No installed package serves any version of it, and "
        f"{_needing(nodes, 'it')}: {advice(op.name)}"
    ]
    if others:
        listed = ", ".join(f"'{op.name}' version '{version}' ({_nodes(nodes)})" for (op, version), nodes in others)
        sentences.append(f"Nor is there one for {listed}.")
    return sentences


def _too_new(op: BuiltinOperator, version: int, nodes: list[int], resolver: OpResolver) -> str:
    """Return the message of a built-in operator that is served in other versions only."""
    first = f"Didn't find op for builtin opcode '{op.name}' version '{version}'."
    served = resolver.versions(op)
    if version < 1:
        return f"{first} {_needing(nodes, 'it').capitalize()}, and versions begin at 1: the file is damaged, convert the model again."
    providers = sorted({str(entry.provenance) for entry in resolver.entries(op)})
    return (
        f"{first} An older version of this builtin might be supported. Are you using an old TFLite binary with a newer model? "
        f"{_needing(nodes, f'version {version}').capitalize()}{_since(op, version)}; {' and '.join(providers)} serves {version_ranges(served)}: "
        "upgrade it, or convert the model for an older runtime."
    )


def _needing(nodes: list[int], what: str) -> str:
    return f"{_nodes(nodes)} {'needs' if len(nodes) == 1 else 'need'} {what}"


def _nodes(nodes: list[int]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes from node {nodes[0]} on"


def _since(op: BuiltinOperator, version: int) -> str:
    try:
        from oplet.versions.runtime_version import first_runtime
    except ImportError:
        return ""  # a build without the map
    release = first_runtime(op.name, version)
    return f", which LiteRT has since {release}" if release else ", which no release of LiteRT is known to have"


def unserved_custom_ops(subgraphs: Sequence[Subgraph], start: int) -> list[str]:
    """Return the names of the custom ops that run when a subgraph does and that have no kernel, each once, in order.

    Nodes that a delegate ran before a resize, and may claim again, are left out.
    """
    if all(node.registration is not None for subgraph in subgraphs for node in subgraph.nodes):  # the usual case
        return []
    awaiting = {node for subgraph in subgraphs for node in subgraph.delegated.awaiting}
    nodes = (node for node in running_nodes(subgraphs, start) if node.registration is None and node not in awaiting)
    return list(dict.fromkeys(node.op_name for node in nodes))


def unserved_op(error: BaseException | None) -> str:
    """Return the op whose node all kernels declined, found in an error or its causes (calling nodes wrap it); "" if none did."""
    while error is not None:
        if isinstance(error, UnservedNodeError) and error.op:
            return error.op
        error = error.__cause__
    return ""


def unresolved(
    nodes: Iterable[Node], subgraphs: Sequence[Subgraph], resolver: OpResolver, advice: Callable[[str], str], model: str
) -> UnresolvedOpError:
    """Return the error that names the custom ops without a kernel among nodes; there must be at least one.

    Args:
        nodes: the nodes to run.
        subgraphs: the model's subgraphs, whose reports have the delegates' reasons for leaving nodes alone.
        resolver: the resolver, for the versions that are served.
        advice: returns advice on an op.
        model: the model's name.
    """
    missing: dict[tuple[str, int], list[int]] = {}
    for node in nodes:
        if node.registration is None:
            missing.setdefault((node.op_name, node.version), []).append(node.index)
    sentences = _missing_customs(missing, resolver, advice, subgraphs)
    (name, _), indices = next(iter(missing.items()))
    return UnresolvedOpError(
        " ".join(sentences) + f" See instructions: {_GUIDE} Node number {indices[0]} ({name}) failed to prepare in {model}.",
        tuple(name for name, _ in missing),
    )


def _left_alone(op: str, subgraphs: Sequence[Subgraph]) -> str:
    """Return a delegate's reason for not claiming a node of this custom op, as the end of a sentence; "" if there is none."""
    for subgraph in subgraphs:
        for report in subgraph.delegated.reports.values():
            for index, reason in report.unsupported.items():
                if subgraph.nodes[index].op_name == op:
                    return f"; the delegate {report.delegate} leaves it alone: {reason.rstrip('.')}"
    return ""


def _missing_customs(
    ops: Iterable[tuple[str, int]], resolver: OpResolver, advice: Callable[[str], str], subgraphs: Sequence[Subgraph] = ()
) -> list[str]:
    """Return the sentences about custom ops that nothing serves; what holds of several alike is told once."""
    told: dict[str, tuple[str, list[str]]] = {}
    for name, version in ops:
        left_alone, first = _left_alone(name, subgraphs), f"Encountered unresolved custom op: {name}"
        if name.startswith("Flex"):
            first = f"Select TensorFlow op(s), included in the given model, is(are) not supported by this interpreter: {name}{left_alone}."
            first += f" {'Convert the model without it' if left_alone else advice(name).rstrip('.')}; see {_SELECT_GUIDE}."
        elif served := resolver.versions(name):
            first += f". The model needs version {version}, installed packages serve {version_ranges(served)}."
        else:
            first += f"{left_alone}. {advice(name)}"
        told.setdefault(first.replace(name, ""), (first, []))[1].append(name)
    return [f"{first} The same holds for {', '.join(more)}." if more else first for first, (_, *more) in told.values()]
