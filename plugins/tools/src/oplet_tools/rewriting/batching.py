"""Changes a model's batch size: its inputs, the shapes that follow from them, and the constants that hold the old size.

The shapes are found by running the model at both sizes with oplet's kernels. The result is compared with runs of the old model: each
example must give the same output as before.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from oplet import Interpreter, Model
from oplet.errors import InvokeError, OpletError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.toolkit import entry_subgraphs, reachable_subgraphs
from oplet_tools.rewriting.batch_check import Array, EntryPoint, Recording, record
from oplet_tools.rewriting.batch_constants import LATE_RULES, RULES, BatchError, Graph, NodeView, Rule, changed_axes
from oplet_tools.rewriting.stripping import copied, indices

if TYPE_CHECKING:
    from oplet import PluginManager

__all__ = ["set_batch"]

#: Batch sizes that a free batch size is tested with.
_PROBES = (3, 2)

#: Shapes of all tensors, by subgraph.
Shapes = dict[int, list[tuple[int, ...]]]


def set_batch(model: Model, batch: int, plugins: PluginManager) -> tuple[list[str], bool]:
    """Change a model's batch size in place.

    Args:
        batch: the new size, -1 to leave it free.

    Returns:
        Descriptions of changes besides the shapes; and whether outputs of the old and the new model were compared (impossible if
        the model does not run on random values).

    Raises:
        BatchError: the batch size cannot be changed; the message names the node.
        OpletError: the model does not run at its present batch size.
    """
    try:
        return _set_batch(model, batch, plugins)
    except BatchError as error:
        size = "be left free" if batch < 0 else f"become {batch}"
        raise BatchError(f"The batch size of {model.name} cannot {size}: {error}") from error


def _set_batch(model: Model, batch: int, plugins: PluginManager) -> tuple[list[str], bool]:
    entries = [entry for index in entry_subgraphs(model.root) if (entry := EntryPoint(model, index)).batched]
    old = _old_batch(entries)
    if old == batch:
        for entry in entries:
            _close_signatures(model, entry.index, batch)
        return [], True
    new = next(size for size in _PROBES if size != old) if batch < 0 else batch
    original = _interpreter_factory(model, plugins)
    recordings: list[Recording] = []
    before: Shapes = {}
    for entry in entries:
        try:
            recording, interpreter = record(entry, original, old, new)
        except OpletError as error:
            raise BatchError(f"it does not run as it is: {error}") from error
        recordings.append(recording)
        before |= _shapes(model, entry, interpreter)
    work = _BatchChanger(model, old, new, batch < 0, before, plugins)
    after = work.settle(recordings, original)
    for index, shapes in after.items():
        _write_shapes((model.root.subgraphs or [])[index], before[index], shapes, batch < 0)
    for recording in recordings:
        _check(model, recording, original, plugins, new, batch)
    return work.changes, all(recording.complete for recording in recordings)


def _old_batch(entries: list[EntryPoint]) -> int:
    sizes = {size for entry in entries for size in entry.sizes()}
    shapes = "; ".join(entry.described() for entry in entries)
    if not sizes:
        raise BatchError("no input has a dimension that could be the batch.")
    if len(sizes) > 1:
        raise BatchError(f"the first dimensions of the inputs differ: {shapes}.")
    if min(sizes) < 1:
        raise BatchError(f"an input is empty: {shapes}.")
    return sizes.pop()


class _BatchChanger:
    """Changes constants until the model runs at the new batch size with the same results."""

    def __init__(self, model: Model, old: int, new: int, free: bool, before: Shapes, plugins: PluginManager) -> None:
        self._changes: dict[tuple[int, int], str] = {}
        self._model = model
        self._old, self._new, self._free = old, new, free
        self._before = before
        self._plugins = plugins
        self._done: set[tuple[int, int, int]] = set()  # nodes that a rule has changed: once each

    @property
    def changes(self) -> list[str]:
        """Descriptions of what was changed, one for each node."""
        return [text for _, text in sorted(self._changes.items())]

    def settle(self, recordings: list[Recording], original: _InterpreterFactory) -> Shapes:
        """Apply rules until the model runs and gives each recorded example the same output; return all tensors' shapes.

        Raises:
            BatchError: no rule makes the model run with the same outputs.
        """
        while True:
            make = _interpreter_factory(self._model, self._plugins)
            after, outputs, error = self._run(recordings, make)
            if self._adapt(after, RULES):
                continue
            error = error or self._odd_output(recordings, after)
            for recording, values in zip(recordings, outputs):
                error = error or _mixed(self._model, recording, values, original, make, self._new)
            if error is None:
                return after
            if not self._adapt(after, LATE_RULES):
                raise error

    def _run(
        self, recordings: list[Recording], make: _InterpreterFactory
    ) -> tuple[Shapes, list[list[Array]], BatchError | None]:  # fmt: skip
        after: Shapes = {}
        outputs: list[list[Array]] = []
        failure = None
        for recording in recordings:
            interpreter = make()
            try:
                outputs.append(recording.entry.run(interpreter, recording.values(self._new)))
            except OpletError as error:
                outputs.append([])
                if recording.complete or not isinstance(error, InvokeError):
                    failure = failure or BatchError(str(error))
            after |= _shapes(self._model, recording.entry, interpreter)
        return after, outputs, failure

    def _adapt(self, after: Shapes, rules: dict[BuiltinOperator, Rule]) -> bool:
        """Apply rules to nodes whose inputs have their new shapes, those of `after`; return whether a rule changed something."""
        changed = False
        codes = [tables.operator_code(code) for code in self._model.root.operator_codes or []]
        for index, shapes in after.items():
            graph = Graph(self._model, index, self._before[index], shapes, self._old, self._new, self._free)
            waiting: set[int] = set()
            for number, table in enumerate(graph.table.operators or []):
                if not waiting.isdisjoint(indices(table.inputs)):
                    waiting.update(indices(table.outputs))
                    continue
                if (index, number, id(rules)) in self._done:
                    continue
                rule = rules.get(BuiltinOperator(codes[table.opcode_index]))
                words = [] if rule is None else [rule(NodeView(graph, number))]
                words = [text for text in (*words, self._grow_state(graph, number, table)) if text]
                if words:
                    self._done.add((index, number, id(rules)))
                    self._changes[index, number] = f"{NodeView(graph, number)} {'; '.join(words)}"
                    waiting.update(indices(table.outputs))
                    changed = True
        return changed

    def _grow_state(self, graph: Graph, number: int, table: tables.Operator) -> str:
        """Give variables that a node reads along with a batch one row per example; return what was changed, "" if nothing."""
        tensors = graph.table.tensors or []
        places = [place for place in indices(table.inputs) if place >= 0]
        if all(graph.batch_axis(place) is None for place in places):
            return ""
        grown = [p for p in places if tensors[p].is_variable and indices(tensors[p].shape)[:1] == [self._old]]
        if grown and self._free:
            raise NodeView(graph, number).refuse("keeps a state of one row per example, whose shape cannot be left free.")
        for place in grown:
            tensors[place].shape = np.array([self._new, *indices(tensors[place].shape)[1:]], np.int32)
        return f"keeps {self._new} rows of state instead of {self._old}" if grown else ""

    def _odd_output(self, recordings: list[Recording], after: Shapes) -> BatchError | None:
        """Return an error if the shape of a model's output does not follow from the batch size, else None."""
        for recording in recordings:
            index = recording.entry.index
            graph = Graph(self._model, index, self._before[index], after[index], self._old, self._new, self._free)
            if all(self._follows(graph, tensor) for tensor in recording.entry.outputs):
                continue
            for number, table in enumerate(graph.table.operators or []):
                for tensor in indices(table.outputs):
                    if not self._follows(graph, tensor):
                        shapes = f"{list(graph.before[tensor])} into {list(graph.after[tensor])}"
                        return NodeView(graph, number).refuse(f"turns the shape {shapes}, which is not one row per example.")
        return None

    def _follows(self, graph: Graph, tensor: int) -> bool:
        return graph.before[tensor] == graph.after[tensor] or graph.batch_axis(tensor) is not None


def _check(
    model: Model, recording: Recording, original: _InterpreterFactory, plugins: PluginManager, new: int, batch: int
) -> None:
    """Check that the finished model allocates with its stored shapes, and gives the recorded outputs at the batch size `new`."""
    make = _interpreter_factory(model, plugins)
    interpreter = make()
    if batch > 0 and recording.entry.index == 0:
        interpreter.allocate_tensors()
    try:
        outputs = recording.entry.run(interpreter, recording.values(new))
    except InvokeError as error:
        if recording.complete:
            raise BatchError(str(error)) from error
    else:
        mixed = _mixed(model, recording, outputs, original, make, new)
        if mixed is not None:
            raise mixed


def _mixed(
    model: Model, recording: Recording, outputs: list[Array], original: _InterpreterFactory, make: _InterpreterFactory, new: int
) -> BatchError | None:  # fmt: skip
    """Return an error if the model gives examples of a batch other outputs than were recorded one by one, else None."""
    wrong = recording.wrong_outputs(outputs, new)
    if not wrong:
        return None
    table = (model.root.subgraphs or [])[recording.entry.index]
    nodes = table.operators or []
    written = [indices(node.outputs) for node in nodes]
    number = recording.first_wrong(partial(original, keep=True), make(keep=True), written, new)
    name = (table.tensors or [])[wrong[0]].name or wrong[0]
    node = "" if number is None else f"; node {number} ({model.op_of(nodes[number])[1]}) is the first to give other values"
    where = f"in the output '{name}' of subgraph {recording.entry.index}"
    return BatchError(f"the examples of a batch do not come out as they do one by one, {where}{node}.")


class _InterpreterFactory:
    """Makes interpreters of a model as it was when the factory was made."""

    def __init__(self, content: bytes, plugins: PluginManager) -> None:
        self._content = content
        self._plugins = plugins

    def __call__(self, keep: bool = False) -> Interpreter:
        return Interpreter(model_content=self._content, plugins=self._plugins, experimental_preserve_all_tensors=keep)


def _interpreter_factory(model: Model, plugins: PluginManager) -> _InterpreterFactory:
    """Make a factory for interpreters of the model as it is now, with constants of other files included."""
    inside = copy.copy(model)
    inside.root = _decomposed(model.root)
    if model.root.external_buffers:
        inside.root = root = copied(inside.root)
        buffers = root.buffers = [*(root.buffers or [])]
        for tensor in (tensor for subgraph in root.subgraphs or [] for tensor in subgraph.tensors or []):
            if tensor.external_buffer:
                tensor.buffer = len(buffers)
                buffers.append(tables.Buffer(data=model.external_buffer(tensor.external_buffer)))
                tensor.external_buffer = 0
    return _InterpreterFactory(inside.to_bytes(), plugins)


def _decomposed(root: tables.Model) -> tables.Model:
    """Rename the model's composites to a name without a kernel, so that their decompositions run and are checked."""

    def composites(root: tables.Model) -> list[StableHLOCompositeOptions]:
        options = (node.builtin_options_2 for subgraph in root.subgraphs or [] for node in subgraph.operators or [])
        return [each for each in options if isinstance(each, StableHLOCompositeOptions)]

    if composites(root):
        root = copied(root)
    for each in composites(root):
        each.name = "decomposition"
    return root


def _shapes(model: Model, entry: EntryPoint, interpreter: Interpreter) -> Shapes:
    """Return the shapes of all tensors, by subgraph index, of the subgraphs that an entry point runs."""
    found: Shapes = {}
    for index in reachable_subgraphs(model.root.subgraphs or (), [entry.index]):
        found[index] = [tuple(map(int, details["shape"])) for details in interpreter.get_tensor_details(index)]
    return found


def _write_shapes(subgraph: tables.SubGraph, before: list[tuple[int, ...]], after: list[tuple[int, ...]], free: bool) -> None:
    """Write new shapes into a subgraph's tensors; if `free`, dimensions that changed become -1 in the shape signatures."""
    for tensor, old, new in zip(subgraph.tensors or [], before, after):
        axes = changed_axes(old, new)
        shape = indices(tensor.shape)
        if not axes or len(shape) != len(old):
            continue
        signature = indices(tensor.shape_signature) if tensor.shape_signature is not None else None
        for axis in axes:
            if free:
                signature = signature if signature is not None and len(signature) == len(shape) else list(shape)
                signature[axis] = -1
            else:
                shape[axis] = new[axis]
                if signature is not None and len(signature) == len(shape):
                    signature[axis] = new[axis]
        tensor.shape = np.array(shape, np.int32)
        if signature is not None:
            tensor.shape_signature = np.array(signature, np.int32)


def _close_signatures(model: Model, index: int, batch: int) -> None:
    """Replace free batch dimensions (-1) in the shape signatures of subgraph `index` by the batch size."""
    for tensor in (model.root.subgraphs or [])[index].tensors or []:
        if indices(tensor.shape)[:1] == [batch] and indices(tensor.shape_signature)[:1] == [-1]:
            tensor.shape_signature = np.array([batch, *indices(tensor.shape_signature)[1:]], np.int32)
