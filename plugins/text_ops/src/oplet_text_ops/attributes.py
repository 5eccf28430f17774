"""A node's options: a FlexBuffers map, or the attributes of a NodeDef where the op is named as TensorFlow's flex ops are.

The NodeDef's attributes are those of the map, but for types, which kernels take from tensors.
"""

from __future__ import annotations

from typing import Any, Final

from oplet import Node, ensure
from oplet.kernels.options import read_node_def, tensorflow_node
from oplet.schema.flexbuffers import read_flexbuffer

__all__ = ["FLEX", "options_of"]

#: What the names of TensorFlow's operators in `.tflite` files begin with.
FLEX: Final = "Flex"


def options_of(node: Node, *, text: bool = True) -> dict[str, Any]:
    """Return a node's custom options by name.

    Args:
        text: whether strings are read as UTF-8; else they are bytes.

    Raises:
        EnsureError: the custom options are neither a NodeDef nor a FlexBuffers map.
    """
    if not node.op_name.startswith(FLEX):
        return node.custom_map() if text else _map_of_bytes(node)
    try:
        attributes = read_node_def(tensorflow_node(node)[1]).attributes
    except ValueError as error:
        ensure(False, f"its NodeDef is damaged ({error}).")
    return {name: _text(value) for name, value in attributes.items()} if text else attributes


def _map_of_bytes(node: Node) -> dict[str, Any]:
    try:
        options: Any = read_flexbuffer(node.custom_options, text=False)
    except ValueError as error:
        ensure(False, f"the {len(node.custom_options)} bytes of its custom options are not a FlexBuffer ({error}).")
    return options if isinstance(options, dict) else {}


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
