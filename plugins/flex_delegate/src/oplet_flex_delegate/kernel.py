"""Kernel of a partition: its operators run one by one, with intermediate values kept as TensorFlow tensors.

A function of TensorFlow's for the whole partition takes 120 to 220 microseconds a call, one operator about 10: most partitions are shorter
than would pay for it, and a function would have to be made again for every shape.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from oplet import Context, DelegateKernel, DelegateParams, Node, Tensor, TensorType, charge, checkpoint
from oplet.errors import InvokeError, LimitError, OpletError, PrepareError
from oplet_flex_delegate.graph import Read, RefusedError, Shape, Source, import_nodes, shapes_of
from oplet_flex_delegate.guards.checkpoints import CHECKPOINTS, confined
from oplet_flex_delegate.guards.conditions import is_cut
from oplet_flex_delegate.guards.guard import Guard, output_bytes
from oplet_flex_delegate.library import cpu, executor, reason_of, tensorflow
from oplet_flex_delegate.operation import Operation
from oplet_flex_delegate.values import OPAQUE, TYPES, copied_nbytes, elements_of, reader

__all__ = ["FlexKernel"]

_KEY = ("oplet_flex_delegate", "container")
_numbers = itertools.count()


class Container:
    """A container name unique to one interpreter, and the resources created under it.

    All kernels of an interpreter share one container; when the last kernel leaves it, the resources are destroyed.

    Attributes:
        name: the name, for the attribute `container`.
    """

    def __init__(self) -> None:
        self.name = f"oplet-{os.getpid()}-{next(_numbers)}"
        self._users = 0
        self._handles: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, context: Context) -> Container:
        """Return the container of the context's interpreter, and increment the count of its users (kernels)."""
        found: Container = context.resources.setdefault(_KEY, cls())
        found._users += 1
        return found

    def keep(self, key: Hashable, handle: Any) -> None:
        """Store a resource's handle, so that it is destroyed at the end; handles with the same key refer to the same resource."""
        self._handles[key] = handle

    def leave(self, context: Context) -> None:
        """Decrement the count of users (kernels); destroy the container's resources when none is left."""
        self._users -= 1
        if self._users:
            return
        if context.resources.get(_KEY) is self:
            del context.resources[_KEY]
        handles, self._handles = self._handles, {}
        if not handles:
            return
        run, failures = executor(), tensorflow().errors.OpError
        for handle in handles.values():
            with suppress(failures):  # one that another node destroyed
                run(b"DestroyResourceOp", 0, [handle], ("ignore_lookup_error", True))


#: Constants of more elements say nothing about shapes, and are not copied into the graph that infers them.
_VALUES = 1024
#: Results of inference that are kept, by the shapes of the inputs.
_REMEMBERED = 64

Run = Callable[[Sequence[Any]], Sequence[Any]]


class _Step(NamedTuple):
    """One node to run: its function, and the positions of its inputs and outputs in the list of values.

    Attributes:
        node: the node.
        key: identifies the node within the interpreter.
        run: runs the operator.
        check: checks the inputs before each run; None if there is nothing to check.
        reads: positions of its inputs.
        writes: positions of its outputs.
        last: positions of values that are not read after this step.
        resources: which of its outputs are resources (variables, tables) that it creates.
    """

    node: Node
    key: tuple[int, int]
    run: Run
    check: Callable[[Sequence[Any]], None] | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    last: tuple[int, ...]
    resources: tuple[int, ...]


class FlexKernel(DelegateKernel):
    """Runs the nodes of one partition eagerly in TensorFlow.

    Args:
        operations: the nodes' operators, in their order, each with the name of its NodeDef.
        folder: the folder for checkpoints; None where no operator reads or writes files.
    """

    def __init__(self, operations: Sequence[tuple[Operation, str]], folder: str | None = None) -> None:
        self._operations = operations
        self._folder = folder
        self._container: Container | None = None
        self._calls: list[Run] = []
        self._inferred: dict[tuple[Any, ...], list[list[Shape]]] = {}
        self._shapes: list[list[Shape]] = []
        self._constants: dict[Tensor, tuple[Any, Any]] = {}

    def init(self, context: Context, params: DelegateParams) -> None:
        self._container = container = Container.of(context)
        self._nodes = params.nodes
        self._outputs = params.output_tensors
        self._inputs = [tensor for tensor in params.input_tensors if tensor is not None]
        self._calls = [self._caller(operation, container.name, name) for operation, name in self._operations]

    def _caller(self, operation: Operation, container: str, name: str) -> Run:
        call = operation.caller(container, name)
        return call if self._folder is None or operation.op not in CHECKPOINTS else confined(call, self._folder)

    def prepare(self, context: Context, node: Node) -> None:
        self._shapes = self._infer()
        made = {tensor: shape for each, shapes in zip(self._nodes, self._shapes) for tensor, shape in zip(each.outputs, shapes)}
        for (operation, _), shapes in zip(self._operations, self._shapes):
            charge(output_bytes(operation, shapes))
        for tensor in self._outputs:
            shape = made[tensor]
            if shape is not None and None not in shape:
                context.resize_tensor(tensor, [size for size in shape if size is not None])
            else:
                context.set_dynamic(tensor)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        places = {tensor: place for place, tensor in enumerate(self._inputs)}
        for each in self._nodes:
            for tensor in each.outputs:
                places.setdefault(tensor, len(places))
        template: list[Any] = [None] * len(places)
        for tensor in self._inputs:
            if tensor.is_constant:
                template[places[tensor]] = self._constant(tensor)
        self._constants = {tensor: pair for tensor, pair in self._constants.items() if tensor in places}
        readers = [(places[tensor], reader(tensor)) for tensor in self._inputs if not tensor.is_constant]
        steps = self._steps(places)
        writers = [(places[tensor], _writer(context, tensor)) for tensor in self._outputs]
        container = self._joined

        strings = [tensor for tensor in self._inputs if tensor.type is TensorType.STRING and not tensor.is_constant]

        def run() -> None:
            values = template.copy()
            if len(strings) > 1:  # each is charged when it is copied, and all together here
                charge(sum(copied_nbytes(tensor.data) for tensor in strings))
            for place, read in readers:
                values[place] = read()
            with cpu():
                for step in steps:
                    checkpoint()
                    inputs = [values[place] for place in step.reads]
                    try:
                        if step.check is not None:
                            step.check(inputs)
                        made = step.run(inputs)
                    except OpletError as error:
                        raise _named(error, step.node) from error
                    except Exception as error:  # its bindings raise Python's classes too
                        raise _explained(error, step.node) from error
                    for place, value in zip(step.writes, made):
                        values[place] = value
                    for output in step.resources:
                        container.keep((*step.key, output), made[output])
                    del inputs, made
                    for place in step.last:
                        values[place] = None
            for place, write in writers:
                write(values[place])

        return run

    def free(self, context: Context) -> None:
        self._calls, self._shapes = [], []
        self._inferred.clear()
        self._constants.clear()
        if self._container is not None:
            container, self._container = self._container, None
            container.leave(context)

    @property
    def _joined(self) -> Container:
        if self._container is None:
            raise RuntimeError("the kernel was freed")
        return self._container

    def _infer(self) -> list[list[Shape]]:
        """Check all nodes, and infer the shapes of each one's outputs for the present inputs."""
        sources = [_source(tensor) for tensor in self._inputs]
        key = tuple((source.shape, None if source.value is None else source.value.tobytes()) for source in sources)
        if key not in self._inferred:
            reads: dict[Tensor, Read] = {tensor: place for place, tensor in enumerate(self._inputs)}
            nodes: list[tuple[Any, list[Read]]] = []
            asked = []
            for each, (operation, _) in zip(self._nodes, self._operations):
                if is_cut(operation.op, operation.attributes):  # its guard asks, while running
                    for tensor in each.outputs:
                        reads[tensor] = len(sources)
                        sources.append(Source(TYPES[tensor.type]))
                    continue
                reads.update((tensor, (len(nodes), output)) for output, tensor in enumerate(each.outputs))
                nodes.append((operation.definition, [reads[tensor] for tensor in each.inputs]))
                asked.append(each)
            try:
                found = import_nodes(sources, nodes)
            except RefusedError as error:
                raise _named(PrepareError(str(error)), asked[error.place]) from error
            if len(self._inferred) >= _REMEMBERED:
                self._inferred.clear()
            shapes = {each: shapes_of(imported) for each, imported in zip(asked, found)}
            self._inferred[key] = [shapes.get(each, [None] * len(each.outputs)) for each in self._nodes]
        return self._inferred[key]

    def _constant(self, tensor: Tensor) -> Any:
        """Return a constant as a TensorFlow tensor, converted once."""
        data = tensor.data
        held = self._constants.get(tensor)
        if held is None or held[0] is not data:
            self._constants[tensor] = held = data, reader(tensor)()
        return held[1]

    def _steps(self, places: dict[Tensor, int]) -> list[_Step]:
        last: dict[int, int] = {}
        for number, each in enumerate(self._nodes):
            last.update((places[tensor], number) for tensor in (*each.inputs, *each.outputs))
        kept = {places[tensor] for tensor in self._outputs}
        known: dict[Tensor, Shape] = {tensor: None if tensor.type in OPAQUE else tensor.shape for tensor in self._inputs}
        steps = []
        for number, (each, (operation, _)) in enumerate(zip(self._nodes, self._operations)):
            shapes = self._shapes[number]
            static = all(_static(known[tensor], tensor) for tensor in each.inputs) and all(map(_static, shapes, each.outputs))
            known.update(zip(each.outputs, shapes))
            guard = Guard(operation, shapes if static else None)
            steps.append(
                _Step(
                    each,
                    (id(self), number),
                    self._calls[number],
                    None if guard.idle else guard.check,
                    tuple(places[tensor] for tensor in each.inputs),
                    tuple(places[tensor] for tensor in each.outputs),
                    tuple(place for place, at in last.items() if at == number and place not in kept),
                    operation.resources,
                )
            )
        return steps


def _static(shape: Shape, tensor: Tensor) -> bool:
    return tensor.type in OPAQUE or (shape is not None and None not in shape)


def _source(tensor: Tensor) -> Source:
    says = tensor.is_constant and tensor.type not in (*OPAQUE, TensorType.STRING) and tensor.size <= _VALUES
    return Source(TYPES[tensor.type], tensor.shape, tensor.data if says else None)


def _writer(context: Context, tensor: Tensor) -> Callable[[Any], None]:
    """Return a function that copies a TensorFlow value into the output tensor."""
    if tensor.type in OPAQUE:

        def keep(value: Any) -> None:
            shape, elements = elements_of(value)
            if tensor.is_dynamic:
                context.resize_tensor(tensor, shape)
            elif shape != tensor.shape:
                raise _unforeseen(tensor, shape)
            data = tensor.data.reshape(-1)
            for place, element in enumerate(elements):
                data[place] = element

        return keep

    def write(value: Any) -> None:
        array = value.numpy()
        shape = getattr(array, "shape", ())  # a single string is bytes
        if tensor.is_dynamic:
            context.resize_tensor(tensor, shape)
        elif shape != tensor.shape:
            raise _unforeseen(tensor, shape)
        tensor.data[...] = array

    return write


def _unforeseen(tensor: Tensor, shape: Sequence[int]) -> InvokeError:
    return InvokeError(f"TensorFlow gives {tensor} the shape {list(shape)}, which its shape function did not foresee.")


def _named(error: OpletError, node: Node) -> OpletError:
    """Return the error with the model's node named; the runtime adds the partition."""
    return type(error)(f"{node.op_name}, node {node.index}, run by TensorFlow: {error}")


def _explained(error: Exception, node: Node) -> OpletError:
    """Convert a TensorFlow exception to an oplet error with its first line and the node."""
    short = isinstance(error, (MemoryError, tensorflow().errors.ResourceExhaustedError))
    return _named((LimitError if short else InvokeError)(f"{reason_of(error)}."), node)
