"""Several Flex nodes in a row, in oplet and in TensorFlow: for operators on lists and tables, which only other operators can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from flatbuffers import flexbuffers
from numpy.typing import NDArray
from plugins.flex_ops.tests.nodedefs import flex_options

from oplet import Interpreter, ModelBuilder, TensorType
from oplet_testing import invoke

Array = NDArray[Any]


class Step(NamedTuple):
    """A node.

    Attributes:
        op: TensorFlow's name of the operator.
        inputs: names of values, separated by blanks.
        outputs: names of values with their types, separated by blanks: "list:VARIANT size:INT32".
        attributes: as for `flex_options`.
    """

    op: str
    inputs: str = ""
    outputs: str = ""
    attributes: Mapping[str, Any] = {}

    def made(self) -> list[tuple[str, TensorType]]:
        """The names and types of the outputs."""
        return [(name, TensorType[type]) for name, type in (each.split(":") for each in self.outputs.split())]


def readable(steps: Sequence[Step]) -> list[str]:
    """The names of all outputs that are no lists and no tables."""
    return [name for step in steps for name, type in step.made() if type not in (TensorType.VARIANT, TensorType.RESOURCE)]


def chain_model(steps: Sequence[Step], feeds: Mapping[str, Array]) -> bytes:
    """The model of the nodes; its inputs are the feeds, its outputs all that can be read."""
    builder = ModelBuilder("chain")
    graph = builder.add_subgraph()
    at = {
        name: graph.add_tensor(name, TensorType.STRING if value.dtype == object else value.dtype, value.shape)
        for name, value in feeds.items()
    }
    graph.set_inputs(*at.values())
    for step in steps:
        at |= {name: graph.add_tensor(name, type, []) for name, type in step.made()}
        graph.add_operator(
            f"Flex{step.op}",
            [at[name] for name in step.inputs.split()],
            [at[name] for name, _ in step.made()],
            custom_options=flex_options(step.op, step.attributes),
        )
    graph.set_outputs(*(at[name] for name in readable(steps)))
    return builder.to_bytes()


def oplet_chain(steps: Sequence[Step], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """All values that can be read, by this package alone.

    Raises:
        OpletError: a node is refused.
    """
    interpreter = Interpreter(model_content=chain_model(steps, feeds), plugins=["oplet-flex-ops"])
    return dict(zip(readable(steps), invoke(interpreter, *feeds.values())))


def tensorflow_chain(steps: Sequence[Step], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """All values that can be read, by TensorFlow; skips the test where TensorFlow is not installed.

    Raises:
        tensorflow.errors.OpError, ValueError: a node is refused.
    """
    tf = pytest.importorskip("tensorflow")
    from tensorflow.python.framework import op_def_registry

    definition, graph = tf.compat.v1.GraphDef(), tf.Graph()
    made = {}
    for name, value in feeds.items():  # no constants: the kernels decide what is refused, not what the graph infers of shapes
        holder = definition.node.add(name=name, op="Placeholder")
        holder.attr["dtype"].type = (tf.string if value.dtype == object else tf.as_dtype(value.dtype)).as_datatype_enum
        made[name] = f"{name}:0"
    for number, step in enumerate(steps):
        node = definition.node.add()
        root = flexbuffers.GetRoot(bytearray(flex_options(step.op, step.attributes))).AsVector
        node.ParseFromString(bytes(root[1].AsStringBytes))
        node.name = f"step{number}"
        known = {attribute.name for attribute in op_def_registry.get(step.op).attr}
        for name in set(node.attr) - known:  # tests give all operators on lists the same attributes
            del node.attr[name]
        node.input.extend(made[name] for name in step.inputs.split())
        if number:
            node.input.append(f"^step{number - 1}")
        made |= {name: f"step{number}:{position}" for position, (name, _) in enumerate(step.made())}
    with graph.as_default(), tf.device("cpu"):
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session(graph=graph) as session:
            names = readable(steps)
            values = session.run([made[name] for name in names], {f"{name}:0": value for name, value in feeds.items()})
            return {
                name: np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value)
                for name, value in zip(names, values)
            }


def assert_same(steps: Sequence[Step], feeds: Mapping[str, Array]) -> bool:
    """Check that both give the same values, or that both refuse; returns whether they gave any."""
    import tensorflow as tf

    from oplet.errors import OpletError

    try:
        wanted: Any = tensorflow_chain(steps, feeds)
    except (tf.errors.OpError, ValueError) as error:
        wanted = str(error)
    try:
        found: Any = oplet_chain(steps, feeds)
    except OpletError as error:
        found = str(error)
    story = f"{[tuple(step) for step in steps]}\n{dict(feeds)}\nTensorFlow: {wanted}\noplet: {found}"
    assert isinstance(wanted, str) == isinstance(found, str), story
    if isinstance(wanted, str):
        return False
    for name, value in wanted.items():
        assert found[name].dtype == value.dtype, story
        np.testing.assert_array_equal(found[name], value, err_msg=story)
    return True
