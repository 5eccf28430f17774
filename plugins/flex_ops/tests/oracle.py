"""TensorFlow itself, operator by operator: what its kernels give for a NodeDef's attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from numpy.typing import NDArray
from plugins.flex_ops.tests.nodedefs import flex_options


def tensorflow_results(op: str, inputs: Sequence[NDArray[Any]], attributes: Mapping[str, Any] = {}) -> list[NDArray[Any]]:
    """The outputs of one operator in TensorFlow; skips the test where TensorFlow is not installed.

    Args:
        op: TensorFlow's name of the operator.
        inputs: an array for each input of the node; strings as arrays of bytes objects.
        attributes: as for `flex_options`.

    Raises:
        tensorflow.errors.OpError, ValueError: TensorFlow refuses the node.
    """
    tf = pytest.importorskip("tensorflow")
    root = flexbuffers.GetRoot(bytearray(flex_options(op, attributes))).AsVector
    node = tf.compat.v1.NodeDef.FromString(bytes(root[1].AsStringBytes))
    node.name = "node"
    definition, graph = tf.compat.v1.GraphDef(), tf.Graph()
    for number, array in enumerate(inputs):
        constant = definition.node.add(name=f"input{number}", op="Const")
        constant.attr["dtype"].type = (tf.string if array.dtype == object else tf.as_dtype(array.dtype)).as_datatype_enum
        constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
        node.input.append(constant.name)
    definition.node.add().CopyFrom(node)
    with graph.as_default(), tf.device("cpu"):
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session(graph=graph) as session:
            return [
                np.asarray(value, object if isinstance(value, bytes) else None)
                for value in session.run(list(graph.get_operation_by_name("node").outputs))
            ]
