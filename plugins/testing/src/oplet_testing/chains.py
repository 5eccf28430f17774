"""Models that are a chain of nodes, and elementwise custom ops for them: for tests of what happens around kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Context, Node, Registration
from oplet.errors import ModelError
from oplet.toolkit import arguments as kinds
from oplet_testing.graphs import Graph, Op
from oplet_testing.one_op import Spec

__all__ = ["chain_graph", "elementwise"]

_OPS = kinds.Kind(
    "a list of one op or more, each a name or an Op",
    lambda value: isinstance(value, (list, tuple)) and bool(value) and all(isinstance(each, (str, Op)) for each in value),
)
_FUNCTION = kinds.Kind("a function of arrays", callable)


@kinds.takes(ops=_OPS, spec=kinds.one_of(Spec), outputs=kinds.SIZES, name=kinds.TEXT)
def chain_graph(ops: Sequence[str | Op], spec: Spec, *, outputs: Sequence[int] = (), name: str = "") -> Graph:
    """Make a subgraph for `graph_model` whose nodes form a chain: each reads the tensor that the node before it writes.

    The tensors are t0 (the input) to tN (written by the last of N nodes); the numbers are their indices, too.

    Args:
        ops: one per node: a built-in operator's name, a custom op's, or an Op with options and no tensors.
        spec: the type and shape of all tensors.
        outputs: the indices of the output tensors; by default only the last tensor.
        name: the subgraph's name in messages.

    Raises:
        ModelError: an argument has a wrong type, an Op names tensors, or an output index does not exist.

    Examples:
        >>> from oplet_testing import Spec, chain_graph, graph_model
        >>> graph = chain_graph(["TANH", "RELU"], Spec("float32", [4]))
        >>> graph.inputs, graph.outputs, list(graph.tensors)
        ('t0', 't2', ['t0', 't1', 't2'])
        >>> model = graph_model(graph, signatures={"serving_default": 0})
    """
    nodes = []
    for index, each in enumerate(ops):
        op = Op(each) if isinstance(each, str) else each
        if op.inputs or op.outputs:
            raise ModelError(f"chain_graph names the tensors; leave them out of {op!r}.")
        nodes.append(op._replace(inputs=f"t{index}", outputs=f"t{index + 1}"))
    names = [f"t{index}" for index in range(len(nodes) + 1)]
    for index in outputs:
        if not 0 <= index < len(names):
            raise ModelError(f"chain_graph has no tensor {index} for an output; its tensors are 0 to {len(nodes)}.")
    return Graph(dict.fromkeys(names, spec), "t0", " ".join(names[index] for index in outputs) or names[-1], nodes, name)


@kinds.takes(function=_FUNCTION)
def elementwise(function: Callable[..., Any], **fields: Any) -> Registration:
    """Return the registration of an op that computes a numpy function of its inputs, for custom ops in tests.

    The output has the inputs' broadcast shape; `invoke` resizes it where it is dynamic.

    Args:
        function: takes one array per input and returns the values of the output.
        fields: further fields of the Registration, such as `limits` or `pure`.

    Raises:
        ModelError: `function` cannot be called.

    Examples:
        >>> import numpy as np
        >>> from oplet import MutableOpResolver
        >>> from oplet_testing import Spec, chain_graph, elementwise, graph_model, run_op
        >>> resolver = MutableOpResolver()
        >>> resolver.add_custom("AddOne", elementwise(lambda x: x + 1))
        >>> model = graph_model(chain_graph(["AddOne"] * 3, Spec("float32", [2])))
        >>> run_op(model, np.array([1, 2], np.float32), op_resolver=resolver, plugins=[])[0].tolist()
        [4.0, 5.0]
    """

    def prepare(context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], np.broadcast_shapes(*(tensor.shape for tensor in node.inputs)))

    def invoke(context: Context, node: Node) -> None:
        if node.outputs[0].is_dynamic:
            prepare(context, node)
        node.outputs[0].data[...] = function(*(tensor.data for tensor in node.inputs))

    return Registration(**{"prepare": prepare, "invoke": invoke, **fields})
