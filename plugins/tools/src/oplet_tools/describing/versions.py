"""Versions of a model's operators: those that it has, those that it needs, and the runtime releases that support them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oplet import Model
from oplet.errors import ModelError, OpletError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator
from oplet.schema.naming import shown
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.toolkit import verify
from oplet.versions.model_versions import MINIMUM_RUNTIME, minimum_runtime_of, nodes_of, operator_name
from oplet.versions.op_version import explain_version
from oplet.versions.runtime_version import first_runtime, minimum_runtime, version_key

if TYPE_CHECKING:
    from oplet import PluginManager

__all__ = [
    "KNOWN_CUSTOM_OPS",
    "NodeVersion",
    "ReleaseError",
    "describe_versions",
    "flex",
    "minimum_runtime_noted",
    "needed_version",
    "node_versions",
    "parse_release",
    "problems_with",
]

#: Custom ops that LiteRT's own resolver registers.
KNOWN_CUSTOM_OPS = frozenset({"Mfcc", "AudioSpectrogram", "TFLite_Detection_PostProcess", "aeq.hadamard_rotation"})

Rows = Mapping[tuple[str, int], str]


class NodeVersion(NamedTuple):
    """The version of one node."""

    subgraph: int
    node: int  #: Its index there.
    op: str  #: The operator's name, or the custom op's.
    custom: bool  #: Whether it is a custom op.
    version: int  #: The version in the file.
    needed: int  #: The lowest version that supports the node; for a custom op the version in the file.
    why: str  #: The reason for `needed`, "" for the operator's lowest version.
    first_runtime: str | None  #: The first release that runs `version`; None if it is unknown.
    needed_runtime: str | None  #: The first release that runs `needed`; None if it is unknown.


def node_versions(root: tables.Model, extra: Rows | None = None) -> list[NodeVersion]:
    """Return the version of every node of every subgraph.

    Args:
        extra: the first runtime release of operators that are not built in, by name and version.

    Raises:
        ModelError: a node refers to an operator code that does not exist.
    """
    found = []
    for s, n, operator, code, subgraph in nodes_of(root):
        op = tables.operator_code(code)
        custom = op == BuiltinOperator.CUSTOM
        name = (code.custom_code or "") if custom else operator_name(op)
        needed, why = (code.version, "") if custom else needed_version(op, operator, subgraph.tensors or ())
        if op == BuiltinOperator.STABLEHLO_COMPOSITE:
            why = _composite(operator) or why
        releases = first_runtime(name, code.version, extra), first_runtime(name, needed, extra)
        found.append(NodeVersion(s, n, name, custom, code.version, needed, why, *releases))
    return found


def needed_version(op: int, operator: tables.Operator, tensors: Sequence[tables.Tensor]) -> tuple[int, str]:
    """Return the lowest version of a built-in operator that supports a node, and the reason.

    Raises:
        ModelError: this schema does not have the operator.
    """
    if op not in BuiltinOperator._value2member_map_:
        raise ModelError(f"Op builtin_code out of range: {op}. This schema does not have it; upgrade oplet.")
    options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    return explain_version(BuiltinOperator(op), _at(tensors, operator.inputs), _at(tensors, operator.outputs), options)


def _composite(operator: tables.Operator) -> str:
    options = operator.builtin_options_2
    if not isinstance(options, StableHLOCompositeOptions):
        return ""
    return f"the composite {shown(options.name) or 'without a name'} version {options.version}; any runtime may run its decomposition"


def _at(tensors: Sequence[tables.Tensor], indices: Sequence[int] | np.ndarray | None) -> list[tables.Tensor | None]:
    given = () if indices is None else np.asarray(indices).tolist()
    return [tensors[i] if 0 <= i < len(tensors) else None for i in given]


class ReleaseError(OpletError, ValueError):
    """A release is not written as numbers with dots."""


def parse_release(release: str) -> str:
    """Return the release in its comparable form of three numbers: "2.5" becomes "2.5.0".

    Raises:
        ReleaseError: the text is not of the form 2.5 or 2.5.0.
    """
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}){1,2}", release):
        raise ReleaseError(f"'{release}' is not a release; releases are written 2.5.0 or 2.5.")
    numbers = [str(int(part)) for part in release.split(".")]
    return ".".join([*numbers, "0"][:3])


def flex(name: str) -> bool:
    """Return whether a custom op is a TensorFlow op, which the Flex delegate runs."""
    return name.startswith("Flex")


def describe_versions(model: str | os.PathLike[str] | Model, plugins: PluginManager | None = None) -> dict[str, Any]:
    """Describe the versions of a model in plain dictionaries and lists, ready for JSON.

    Args:
        model: the .tflite file, or an open model.
        plugins: the plugins that know the first releases of ops that are not built in; all installed ones by default.

    Returns:
        `file`; `minimum_runtime`, the first release that runs the model (None if none is known), `minimum_runtime_lowest`,
        what it would be if each node had the lowest version that it needs, and `minimum_runtime_noted`, what the file says
        itself; `raised_by` (op and version each), the ops without which the minimum would be lower; `ops`, one entry per
        op, version, needed version and reason; `nodes`, one entry per node.

    Raises:
        ModelError: the file cannot be read or is not a valid model.
    """
    if not isinstance(model, Model):
        model = Model.open(model)
    verify(model)
    extra = _rows(plugins)
    nodes = node_versions(model.root, extra)
    minimum = minimum_runtime_of(model.root, extra)
    raising = {(n.op, n.version) for n in nodes if n.first_runtime is not None and n.first_runtime == minimum}
    return {
        "file": model.name,
        "minimum_runtime": minimum,
        "minimum_runtime_lowest": minimum_runtime(((n.op, n.needed) for n in nodes), extra),
        "minimum_runtime_noted": minimum_runtime_noted(model),
        "raised_by": [{"op": op, "version": version} for op, version in sorted(raising)],
        "ops": _ops(nodes),
        "nodes": [node._asdict() for node in nodes],
    }


def minimum_runtime_noted(model: Model) -> str | None:
    """Return the runtime release in the model's metadata entry `min_runtime_version`; None without the entry."""
    data = model.metadata(MINIMUM_RUNTIME)
    return None if data is None else data.tobytes().split(b"\0")[0].decode("utf-8", "replace") or None


def problems_with(
    model: str | os.PathLike[str] | Model, release: str, plugins: PluginManager | None = None
) -> list[dict[str, Any]]:
    """Return the reasons why a release of TensorFlow Lite or LiteRT does not run a model; an empty list if it does.

    Only operators are checked: it is not on record which release first read each part of the file format.

    Args:
        release: the release's number, such as "2.5.0".

    Returns:
        One entry per node that it would not run: `subgraph`, `node`, `op`, `version`, `why`, and `lowest_runs`: whether it would
        run the lowest version that the node needs.

    Raises:
        ModelError: the file cannot be read or is not a valid model.
        ReleaseError: the release is malformed.
    """
    wanted = version_key(parse_release(release))
    if not isinstance(model, Model):
        model = Model.open(model)
    verify(model)
    problems = []
    for node in node_versions(model.root, _rows(plugins)):
        why = _why_not(node, wanted)
        if why:
            problems.append(
                {
                    "subgraph": node.subgraph,
                    "node": node.node,
                    "op": node.op,
                    "version": node.version,
                    "why": why,
                    "lowest_runs": node.needed != node.version and _knows(node.needed_runtime, wanted),
                }
            )
    return problems


def _rows(plugins: PluginManager | None) -> Rows:
    from oplet.toolkit import default_manager

    return (plugins or default_manager()).runtime_versions()


def _knows(first: str | None, release: tuple[int, ...]) -> bool:
    return first is not None and version_key(parse_release(first)) <= release


def _why_not(node: NodeVersion, release: tuple[int, ...]) -> str:
    if node.first_runtime is not None:
        return "" if _knows(node.first_runtime, release) else f"first known in {node.first_runtime}"
    if not node.custom:
        return "no release is known to run this version"
    if node.op in KNOWN_CUSTOM_OPS:
        return ""
    return "an op of TensorFlow, which needs the Flex delegate" if flex(node.op) else "a custom op that is not part of LiteRT"


def _ops(nodes: Sequence[NodeVersion]) -> list[dict[str, Any]]:
    counts = Counter(node[2:] for node in nodes)
    names = NodeVersion._fields[2:]
    return [dict(zip(names, key)) | {"nodes": count} for key, count in sorted(counts.items(), key=lambda item: item[0][:5])]
