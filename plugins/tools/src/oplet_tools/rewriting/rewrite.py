"""Rewriting of a model: read, change, write."""

from __future__ import annotations

import copy
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from oplet import Model
from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator
from oplet.toolkit import check_target, verify
from oplet.versions.model_versions import make_operator_code, minimum_runtime_of, nodes_of, set_minimum_runtime
from oplet_tools.describing.versions import minimum_runtime_noted, needed_version, node_versions
from oplet_tools.rewriting.stripping import copied, drop_buffers, strip

if TYPE_CHECKING:
    from oplet import PluginManager

__all__ = ["RewriteReport", "rewrite", "rewrite_file", "with_entries"]


@dataclass
class RewriteReport:
    """Report of the changes that `rewrite` made."""

    #: Each operator that got another version: `op`, `before`, `after`, `nodes`.
    versions: list[dict[str, Any]] = field(default_factory=list)
    #: The release that the model needs, `before` and `after`, None where it is not known.
    minimum_runtime: dict[str, str | None] = field(default_factory=dict)
    #: The release in the file's metadata, `before` and `after`.
    noted_runtime: dict[str, str | None] = field(default_factory=dict)
    #: The number of removed items by kind; kinds without any are left out.
    stripped: dict[str, int] = field(default_factory=dict)
    batch: int | None = None  #: The new batch size, -1 if it is left free; None if it did not change.
    #: Descriptions of constants and tensors that were changed for the batch size, one for each node.
    batch_changes: list[str] = field(default_factory=list)
    batch_checked: bool = False  #: Whether runs of the old and the new model on the same values were compared.
    unreferenced: int = 0  #: The number of unreferenced bytes at the end of the file; 0 if `rewrite` made the report.
    unreferenced_kept: bool = False  #: Whether these bytes were written too.
    #: Names of the entries that were added, replaced or removed, with what was done.
    metadata: dict[str, str] = field(default_factory=dict)
    #: The size of the file, `before` and `after`; empty if `rewrite` made the report.
    bytes: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the report in plain dictionaries and lists, ready for JSON."""
        return asdict(self)


def rewrite(
    model: Model,
    *,
    lowest_versions: bool = True,
    strip_unused: bool = False,
    batch: int | None = None,
    metadata: Mapping[str, bytes] | None = None,
    remove_metadata: Sequence[str] = (),
    description: str | None = None,
    plugins: PluginManager | None = None,
) -> tuple[Model, RewriteReport]:
    """Change a copy of a model.

    The metadata entry `min_runtime_version` is always updated.

    Args:
        model: an open model.
        lowest_versions: give every node the lowest version that it needs.
        strip_unused: remove what running the model does not need.
        batch: the new batch size of the inputs and all that follows from them; -1 leaves it free.
        metadata: entries to add or replace, by name.
        remove_metadata: names of entries to remove.
        description: the model's new description.
        plugins: the plugins whose kernels compute the new shapes, and that know the first releases of ops that are not built in.

    Raises:
        ModelError: the model is not valid, an entry to remove does not exist, or the batch size cannot be changed; the message
            names the node.
    """
    from oplet.toolkit import default_manager

    verify(model)
    manager = plugins or default_manager()
    extra = manager.runtime_versions()
    changed = copy.copy(model)
    changed.root = copied(model.root)
    root = changed.root
    report = RewriteReport()
    if batch is not None:
        from oplet_tools.rewriting.batching import set_batch

        report.batch = batch
        report.batch_changes, report.batch_checked = set_batch(changed, batch, manager)
    if strip_unused:
        report.stripped = {kind: count for kind, count in strip(changed).items() if count}
    if lowest_versions:
        report.versions = _set_versions(root)
    report.metadata = _set_metadata(root, model.name, {} if metadata is None else metadata, remove_metadata)
    if description is not None:
        root.description = description or None
    set_minimum_runtime(root, extra)
    report.minimum_runtime = {"before": minimum_runtime_of(model.root, extra), "after": minimum_runtime_of(root, extra)}
    report.noted_runtime = {"before": minimum_runtime_noted(model), "after": minimum_runtime_noted(changed)}
    verify(changed)
    return changed, report


def rewrite_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    force: bool = False,
    constants: Literal["inside", "outside"] | None = None,
    unreferenced: Literal["keep", "drop"] = "keep",
    **changes: Any,
) -> RewriteReport:
    """Read a model file, change the model, and write it to another file.

    Args:
        source: the .tflite file.
        target: the file to write.
        force: whether the target may be the source, which is then replaced atomically.
        constants: where to put constants: "inside" the FlatBuffer or "outside", after it; None leaves them where they are.
        unreferenced: "keep" or "drop" unreferenced bytes at the end of the file.
        changes: the arguments of `rewrite`.

    Raises:
        ModelError: the change is impossible (see `rewrite`), the file cannot be read or written, or the target is the source.
    """
    if not force and os.path.exists(target) and os.path.exists(source) and os.path.samefile(source, target):
        raise ModelError(f"'{target}' is the model itself; write to another file, or replace it with --force.")
    model = Model.open(source)
    try:
        check_target(target)  # early: changing a model may take long
    except OSError as error:
        raise ModelError(f"Could not write '{target}': {error.strerror}.") from error
    before = os.stat(source).st_size
    changed, report = rewrite(model, **changes)
    report.unreferenced = model.unreferenced_bytes()
    report.unreferenced_kept = bool(report.unreferenced) and unreferenced == "keep"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*that nothing refers to", UserWarning)  # the report says so
        changed.save(target, constants, unreferenced)
    report.bytes = {"before": before, "after": os.stat(target).st_size}
    return report


def with_entries(model: Model, entries: Mapping[str, bytes]) -> Model:
    """Return a copy of a model with metadata entries added or replaced, by name; nothing else changes.

    Raises:
        ModelError: the model is not valid.
    """
    verify(model)
    changed = copy.copy(model)
    changed.root = copied(model.root)
    _set_metadata(changed.root, model.name, entries, ())
    return changed


def _replace_codes(root: tables.Model) -> None:
    """Give every node of a built-in operator the lowest version that it needs; custom ops keep theirs.

    Operator codes are replaced by those that nodes use, in the order of their first use.

    Raises:
        ModelError: a node refers to an operator code that does not exist.
    """
    codes: dict[tuple[int, str, int], int] = {}
    made: list[tables.OperatorCode] = []
    for _, _, operator, code, subgraph in nodes_of(root):
        op = tables.operator_code(code)
        custom = code.custom_code or ""
        version = code.version if op == BuiltinOperator.CUSTOM else needed_version(op, operator, subgraph.tensors or ())[0]
        key = op, custom, version
        if key not in codes:
            codes[key] = len(made)
            made.append(make_operator_code(op, custom, version))
        operator.opcode_index = codes[key]
    root.operator_codes = made


def _set_versions(root: tables.Model) -> list[dict[str, Any]]:
    lowered = Counter((node.op, node.version, node.needed) for node in node_versions(root) if node.version != node.needed)
    _replace_codes(root)
    return [
        {"op": op, "before": before, "after": after, "nodes": count} for (op, before, after), count in sorted(lowered.items())
    ]  # fmt: skip


def _set_metadata(root: tables.Model, name: str, new: Mapping[str, bytes], removed: Sequence[str]) -> dict[str, str]:
    entries = root.metadata or []
    there = [entry.name or "" for entry in entries]
    for wanted in removed:
        if wanted not in there:
            known = ", ".join(f"'{entry}'" for entry in there) or "none"
            raise ModelError(f"{name} has no metadata '{wanted}' to remove. It has: {known}.")
    if not new and not removed:
        return {}
    buffers = root.buffers = root.buffers or []
    kept = [entry for entry in entries if entry.name not in removed and entry.name not in new]
    for key, data in new.items():
        kept.append(tables.Metadata(name=key, buffer=len(buffers)))
        buffers.append(tables.Buffer(data=np.frombuffer(data, np.uint8)))
    root.metadata = kept or None
    drop_buffers(root)
    done = dict.fromkeys(removed, "removed")
    return done | {key: "replaced" if key in there else "added" for key in new}
