"""FlexDelegate: claims nodes for TensorFlow, and gives reasons for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oplet import BuiltinOperator, DelegateContext, DelegateFlags, DelegateParams, Node, SimpleDelegate
from oplet.errors import PluginError, PrepareError
from oplet.kernels.options import tensorflow_node
from oplet_flex_delegate.graph import RefusedError
from oplet_flex_delegate.guards.checkpoints import CHECKPOINTS, NO_FOLDER
from oplet_flex_delegate.guards.dangers import never
from oplet_flex_delegate.guards.served import SERVED
from oplet_flex_delegate.kernel import FlexKernel
from oplet_flex_delegate.library import tensorflow
from oplet_flex_delegate.operation import Operation, read_definition, signature_of

__all__ = ["FlexDelegate"]

_PREFIX = "Flex"


class FlexDelegate(SimpleDelegate):
    """The delegate that runs nodes whose name begins with `Flex` in TensorFlow.

    Args:
        options: `num_threads`, the threads of one operator; it has no effect once TensorFlow has run something in this process.
            `folder`, the folder in which the model may save and restore checkpoints, and no other; unless given, the interpreter's.

    Raises:
        ValueError: an option has another name, `num_threads` is no number, or `folder` is empty.
    """

    name = "flex"
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        for key, value in self.options.items():
            fits = value.isdecimal() and int(value) if key == "num_threads" else value and key == "folder"
            if not fits:
                raise ValueError(
                    f"'{key}={value}' is none of its options: num_threads, with a number from 1 on, and folder, with that for checkpoints."
                )
        self._folder: str | None = self.options.get("folder")
        self._num_threads = int(self.options.get("num_threads", 0))
        self._known: dict[tuple[Any, ...], Operation | str] = {}
        self._claimed: dict[tuple[int, int], tuple[Operation, str]] = {}

    def initialize(self, context: DelegateContext) -> None:
        self._known.clear()
        self._folder = self.options.get("folder", context.checkpoint_folder)
        self._subgraph = context.subgraph_index

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        if node.op is not BuiltinOperator.CUSTOM or not node.op_name.startswith(_PREFIX):
            return f"{node.op_name} is no operator of TensorFlow's"
        try:
            op, data = tensorflow_node(node)
            if reason := self._refuses(node, op):
                return reason
            # The interpreter's own number is 1 unless somebody gave another, and TensorFlow's is the machine's.
            tensorflow(self._num_threads or (context.num_threads if context.num_threads > 1 else 0))
            definition = read_definition(data)
            if definition.op != op:
                return f"it is called {op}, and its NodeDef is of {definition.op!r}"
            name, definition.name = definition.name, op
            self._claimed[self._subgraph, node.index] = self._operation(node, definition), name
        except (PrepareError, PluginError, RefusedError) as error:
            return str(error).rstrip(".")
        return True

    def create_kernel(self, params: DelegateParams) -> FlexKernel:
        claimed = [self._claimed.pop((self._subgraph, node.index)) for node in params.nodes]
        return FlexKernel(claimed, self._folder)

    def _refuses(self, node: Node, op: str) -> str:
        if node.op_name != _PREFIX + op:
            return f"its custom options are those of {op!r}"
        if op in CHECKPOINTS:
            return "" if self._folder else f"TensorFlow's {op} is left alone: {NO_FOLDER}"
        if reason := never(op):
            return f"TensorFlow's {op} is left alone: {reason}"
        if op not in SERVED:
            return f"TensorFlow's {op} was not tried for what it does to the process, or is none of its operators"
        return ""

    def _operation(self, node: Node, definition: Any) -> Operation:
        """Return the node's checked operator; equal ones are checked once."""
        signature = signature_of(node)
        key = definition.SerializeToString(deterministic=True), signature
        found = self._known.get(key)
        if found is None:
            try:
                found = Operation(definition, signature)
            except RefusedError as error:
                found = str(error)
            self._known[key] = found
        if isinstance(found, str):
            raise RefusedError(found)
        return found
