"""Collects the operators that models need: names, versions, tensor types and uses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from oplet import Composite, Model
from oplet.errors import ModelError, OpletError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.toolkit import Op, entry_subgraphs, misspelt_operator, reachable_subgraphs, verify
from oplet_tools.describing.operators import composite_of, version_of
from oplet_tools.describing.versions import KNOWN_CUSTOM_OPS, flex

__all__ = ["Key", "NodeNeed", "OpNeed", "SelectionError", "Use", "needs_of", "node_needs"]

#: Upper bound of versions, far above any that exists: "1-4000000000" is a mistake.
_HIGHEST_VERSION = 999
_VERSIONS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*", re.ASCII)
_NO_OPERATORS = frozenset({"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"})


#: An op's name, whether it is a custom op's, and whether it is a composite's.
Key = tuple[str, bool, bool]


class SelectionError(OpletError, ValueError):
    """An op that was requested by name is unknown or cannot be selected."""


class Use(NamedTuple):
    """The types and sparsity of a node's inputs, on which the code that its kernel needs may depend."""

    inputs: tuple[TensorType | None, ...]  #: The type of each input, None for an omitted optional input.
    sparse: bool  #: Whether an input is sparse.


class NodeNeed(NamedTuple):
    """An op, in a version and for some tensor types, that one node needs."""

    subgraph: int  #: The index of its subgraph.
    node: int
    name: str  #: The op's name.
    custom: bool  #: Whether it is a custom op.
    version: int  #: The version of the op in the model.
    types: tuple[TensorType, ...]  #: The types of the tensors that the node reads and writes.
    use: Use  #: How the node uses the op.
    #: Whether the name is a composite's. A composite's node has two needs: the composite, for which no kernel need exist, and the
    #: operator STABLEHLO_COMPOSITE, which runs its decomposition.
    composite: bool = False

    @property
    def key(self) -> Key:
        """The op's name, whether it is a custom op, and whether it is a composite."""
        return self.name, self.custom, self.composite


@dataclass(frozen=True)
class OpNeed:
    """An op that models need, with versions and tensor types."""

    name: str  #: The built-in operator's name, or the custom op's.
    custom: bool  #: Whether it is a custom op.
    versions: tuple[int, ...]  #: The versions that are asked for, ascending; empty for all that kernels exist for.
    types: tuple[TensorType, ...]  #: The tensor types that its nodes read or write, ascending; empty for any.
    models: tuple[str, ...]  #: Names of the models that need it; empty if it was only requested by name.
    uses: frozenset[Use] = frozenset()  #: How nodes use it (input types, sparsity); empty for any use.
    composite: bool = False  #: Whether the name is a composite's, for which no kernel need exist.

    @property
    def key(self) -> Key:
        """The op's name, whether it is a custom op, and whether it is a composite."""
        return self.name, self.custom, self.composite

    @property
    def op(self) -> Op:
        """The op as resolvers take it: a built-in operator, a custom op's name or a `Composite`."""
        return Composite(self.name) if self.composite else self.name if self.custom else BuiltinOperator[self.name]


@dataclass
class _Gathered:
    versions: set[int] = field(default_factory=set)
    types: set[TensorType] = field(default_factory=set)
    uses: set[Use] = field(default_factory=set)
    models: dict[str, None] = field(default_factory=dict)
    every_version: bool = False
    every_type: bool = False


def needs_of(
    models: Iterable[Model | str | os.PathLike[str]], *, ops: Iterable[str] = (), all_codes: bool = False
) -> list[OpNeed]:
    """Collect the operators that all these models need, sorted by name.

    Args:
        models: the models, or their files.
        ops: further ops, for any type and use: "CONV_2D" for all versions that are served, "CONV_2D:1-5", "CONV_2D:1,3", "Atan".
        all_codes: include operator codes that no node uses, and subgraphs that nothing calls.

    Raises:
        ModelError: a model cannot be read, or breaks a rule of the format.
        SelectionError: a text in `ops` is not an op, or its versions are malformed.
    """
    found: dict[Key, _Gathered] = {}
    for each in models:
        model = each if isinstance(each, Model) else Model.open(each)
        for need in node_needs(model, all_codes=all_codes):
            gathered = found.setdefault(need.key, _Gathered())
            gathered.versions.add(need.version)
            gathered.types.update(need.types)
            gathered.uses.add(need.use)
            gathered.models[model.name] = None
        for code in (model.root.operator_codes or ()) if all_codes else ():
            gathered = found.setdefault((*_identity(code), False), _Gathered())
            gathered.versions.add(_checked_version(code, model, ""))
            gathered.models[model.name] = None
    for text in ops:
        name, custom, versions = _parsed(text)
        gathered = found.setdefault((name, custom, False), _Gathered())
        gathered.versions.update(versions)
        gathered.every_version |= not versions
        gathered.every_type = True
    return [
        OpNeed(
            name,
            custom,
            () if gathered.every_version else tuple(sorted(gathered.versions)),
            () if gathered.every_type else tuple(sorted(gathered.types)),
            tuple(gathered.models),
            frozenset() if gathered.every_type else frozenset(gathered.uses),
            composite,
        )
        for (name, custom, composite), gathered in sorted(found.items(), key=lambda item: item[0])
    ]


def node_needs(model: Model, *, all_codes: bool = False) -> Iterator[NodeNeed]:
    """Yield the ops that the nodes of the subgraphs that can run need, in order.

    Args:
        all_codes: include the nodes of all subgraphs.

    Raises:
        ModelError: the model breaks a rule of the format.
    """
    verify(model)
    codes = model.root.operator_codes or []
    subgraphs = model.root.subgraphs or []
    live = set(range(len(subgraphs))) if all_codes else _live(model)
    for s in sorted(live):
        tensors = subgraphs[s].tensors or []
        for n, operator in enumerate(subgraphs[s].operators or []):
            code = codes[operator.opcode_index]
            name, custom = _identity(code)
            version = _checked_version(code, model, f"node {n} ({name}) of subgraph {s}")
            inputs, outputs = ([] if end is None else end.tolist() for end in (operator.inputs, operator.outputs))
            types = {tensors[index].type for index in (*inputs, *outputs) if index >= 0}
            use = Use(
                tuple(tensors[index].type if index >= 0 else None for index in inputs),
                any(index >= 0 and tensors[index].sparsity is not None for index in inputs),
            )
            yield NodeNeed(s, n, name, custom, version, tuple(sorted(types)), use)
            if composite := composite_of(operator):
                yield NodeNeed(s, n, composite.name, False, version_of(operator), tuple(sorted(types)), use, True)


def _live(model: Model) -> set[int]:
    """Return the indices of the subgraphs that can run; all of them if an unknown custom op may call any of them."""
    subgraphs = model.root.subgraphs or ()
    live = reachable_subgraphs(subgraphs, entry_subgraphs(model.root))
    nodes = (node for index in live for node in subgraphs[index].operators or [])
    return set(range(len(subgraphs))) if any(_may_call(model, node) for node in nodes) else live


def _may_call(model: Model, node: tables.Operator) -> bool:
    op, name, _ = model.op_of(node)
    return op is BuiltinOperator.CUSTOM and name not in KNOWN_CUSTOM_OPS and not flex(name) and bool(model.custom_options(node))


def _identity(code: tables.OperatorCode) -> tuple[str, bool]:
    op = BuiltinOperator(tables.operator_code(code))
    return (code.custom_code or "", True) if op is BuiltinOperator.CUSTOM else (op.name, False)


def _checked_version(code: tables.OperatorCode, model: Model, who: str) -> int:
    if code.version < 1:
        name, _ = _identity(code)
        who = who or f"an operator code ({name})"
        raise ModelError(f"{who[0].upper()}{who[1:]} of {model.name} asks for version {code.version}; versions start at 1.")
    return int(code.version)


def _parsed(text: str) -> tuple[str, bool, tuple[int, ...]]:
    """Parse a text such as "CONV_2D:1-5" into name, whether it is a custom op, and versions."""
    name, colon, tail = text.rpartition(":")
    versions: tuple[int, ...] = ()
    if not colon:
        name = text
    elif _VERSIONS.fullmatch(tail):
        versions = _versions(text, tail)
    elif name in BuiltinOperator.__members__ or not tail:
        raise SelectionError(f"'{text}' has no versions after the colon; write {name}:1-5 or {name}:1,3.")
    else:
        name = text  # the colon is part of a custom op's name
    name = name.strip()
    if not name or name in _NO_OPERATORS:
        raise SelectionError(f"'{text}' names no op; give a built-in operator's name (CONV_2D) or a custom op's (Atan).")
    if name in BuiltinOperator.__members__:
        return name, False, versions
    meant = misspelt_operator(name)
    if meant is not None:
        raise SelectionError(f"There is no op called '{name}'; the built-in operator is called {meant}.")
    return name, True, versions


def _versions(text: str, tail: str) -> tuple[int, ...]:
    versions: set[int] = set()
    for part in tail.split(","):
        first, _, last = part.partition("-")
        if len(first) > 3 or len(last) > 3 or not 1 <= int(first) <= int(last or first):
            raise SelectionError(
                f"'{text}' has the versions '{part}'; versions go from 1 to {_HIGHEST_VERSION} and a range must not be empty."
            )
        versions.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(versions))
