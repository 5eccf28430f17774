"""What serves each node of a model, found by preparing it: kernels and delegates are asked about the nodes, not about the names of ops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from oplet import Delegate, Interpreter, Limits, Model, MutableOpResolver, PluginManager, Provenance, Registration
from oplet.errors import OpletError, OpNotFoundError, UnresolvedOpError
from oplet.schema.enums import BuiltinOperator
from oplet.toolkit import Subgraph, SubgraphRunner, entry_subgraphs

__all__ = ["Trial", "Verdict", "try_model"]


#: The provenance of what stands in for kernels that are missing.
_PASSED = Provenance(plugin="missing")


class Verdict(NamedTuple):
    """What provides the kernel of one node."""

    provider: str  #: The package with its version and library, or the delegate's package and name; "" if the node has no kernel.
    provenance: Provenance | None  #: Where the kernel comes from (plugin, package, version); None if the node has no kernel.
    library: str  #: The path of the compiled library that the kernel calls, "" if it calls none.
    why: str  #: Which packages or delegates did not take the node, with their reasons; "" if none.


class Trial(NamedTuple):
    """The result of preparing a model with the shapes in its file, without running it."""

    #: What provides each node's kernel, by (subgraph, node); nodes that were not reached are missing.
    verdicts: dict[tuple[int, int], Verdict]
    refused: dict[tuple[str, int], str]  #: The error of a kernel that refused a node as invalid, by the node's op and version.
    error: str = ""  #: The error of preparing, if no single node is its cause; "" if there was none.


def try_model(model: Model, manager: PluginManager) -> Trial:
    """Prepare a model, without running it, and find which package or delegate provides each node's kernel.

    Built-in operators without a kernel are skipped, so that the other nodes are prepared all the same.

    Args:
        model: the model, read from a file or from bytes.
    """
    if not model.data:
        return Trial({}, {})
    try:
        interpreter = _opened(model, manager)
    except OpletError as error:
        return Trial({}, {}, str(error))
    try:
        refused, error_text = _prepared(interpreter)
        verdicts = dict(entry for subgraph in interpreter.subgraphs for entry in _verdicts(subgraph))
    finally:
        interpreter.close()
    return Trial(verdicts, refused, error_text)


def _opened(model: Model, manager: PluginManager) -> Interpreter:
    path, content = (model.path, None) if model.path is not None else (None, model)
    passed = MutableOpResolver(_PASSED)
    while True:
        try:
            # Limits of its own keep it from plans that other interpreters left, where no kernel would be asked.
            return Interpreter(path, content, op_resolver=passed, plugins=manager, limits=Limits())
        except OpNotFoundError as error:
            if passed.find_op(BuiltinOperator[error.op], error.version) is not None:
                raise
            nothing = Registration(invoke=lambda context, node: None)
            passed.add_builtin(BuiltinOperator[error.op], nothing, error.version, error.version)


def _prepared(interpreter: Interpreter) -> tuple[dict[tuple[str, int], str], str]:
    """Prepare what callers can run; return the ops whose nodes were refused with the reasons, and what failed otherwise."""
    refused: dict[tuple[str, int], str] = {}
    for index in entry_subgraphs(interpreter.model.lazy_root):
        try:
            SubgraphRunner(interpreter, index).allocate()
        except UnresolvedOpError:
            continue  # the verdicts of their nodes say it
        except OpletError as error:
            found = [*_ops_of(error, interpreter)]
            if not found:
                return refused, str(error)
            refused.update(dict.fromkeys(found, str(error)))
    return refused, ""


def _ops_of(error: BaseException | None, interpreter: Interpreter) -> Iterator[tuple[str, int]]:
    """Yield the op and version of the node that an error is about, or those of the nodes that a delegate's kernel runs."""
    node = None
    while error is not None:
        node = getattr(error, "node", None) or node  # the innermost, where nodes call subgraphs
        error = error.__cause__
    if node is None:
        return
    index, op, version = node
    claimed = [
        (each.op_name, each.version)
        for subgraph in interpreter.subgraphs
        if index < len(subgraph.nodes) and subgraph.nodes[index].op_name == op and index in subgraph.delegated.kernels
        for each in subgraph.delegated.kernels[index].nodes
    ]
    yield from claimed or [(op, version)]


def _verdicts(subgraph: Subgraph) -> Iterator[tuple[tuple[int, int], Verdict]]:
    delegated: dict[int, Delegate] = {}
    for kernel, params in subgraph.delegated.kernels.items():
        delegate = subgraph.nodes[kernel].delegate
        if delegate is not None:
            delegated.update((node.index, delegate) for node in params.nodes)
    reports = subgraph.delegated.reports.values()
    for node in subgraph.nodes:
        if node.delegate is not None:
            continue
        why = [f"{who.provenance} declined it: {why}" for who, why in node.declined]
        registration, provenance, provider, library = node.registration, None, "", ""
        if (delegate := delegated.get(node.index)) is not None:
            provenance = delegate.provenance
            provider = f"{provenance} (delegate {delegate.name})"
        elif registration is not None and registration.provenance.plugin != _PASSED.plugin:
            provenance, library = registration.provenance, registration.library
            provider = f"{provenance} ({os.path.basename(library)})" if library else str(provenance)
        else:
            left = [(each.delegate, each.unsupported.get(node.index)) for each in reports]
            why += [f"the delegate {name} leaves it alone: {reason}" for name, reason in left if reason]
        told = "; ".join(text.rstrip(".") for text in why)
        yield (subgraph.index, node.index), Verdict(provider, provenance, library, told)
