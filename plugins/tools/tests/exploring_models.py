"""Models to explore: many layers with paths in their names, control flow, and names that nobody wishes for."""

from __future__ import annotations

import numpy as np

from oplet import ModelBuilder

__all__ = ["HOSTILE", "deep_model", "hostile_model"]

#: Names that end scripts, attributes and terminals where they are not escaped.
HOSTILE = (
    '</script><script>document.title="owned"</script>',
    "<!-- <img src=x onerror=alert(1)>",
    "a\"b'c&d`e${f}",
    "x" * 10_000,
    "line\none\r\t\x00\x1b[31mred\x07\u202ereversed",
)


def deep_model(nodes: int, *, constants: bool = True) -> bytes:
    """A model of residual blocks in stages, with as many nodes; of each block's five, one prepares a constant if `constants`."""
    builder = ModelBuilder("layers with paths in their names")
    graph = builder.add_subgraph("main")
    x = graph.add_tensor("serving_default_x:0", "float32", [1, 16])
    graph.set_inputs(x)
    made, block = 0, 0

    def add(op: str, inputs: list[int], name: str) -> int:
        nonlocal made
        made += 1
        result = graph.add_tensor(name, "float32", [1, 16])
        graph.add_operator(op, inputs, [result])
        return result

    while made < nodes:
        path = f"net/stage_{block // 12}/block_{block}"
        before = x
        if constants and made + 1 < nodes:
            half = graph.add_tensor(f"{path}/weights", "float16", [1, 16], data=np.full((1, 16), 0.5, np.float16))
            scale = add("DEQUANTIZE", [half], f"{path}/weights/dequantized")
            x = add("MUL", [x, scale], f"{path}/scale/mul")
        for op, name in (("RELU", "act/Relu"), ("TANH", "gate/Tanh")):
            x = add(op, [x], f"{path}/{name}") if made < nodes else x
        x = add("ADD", [x, before], f"{path}/add;{path}/shortcut/add") if made < nodes else x
        block += 1
    graph.set_outputs(x)
    return builder.to_bytes()


def hostile_model() -> bytes:
    """A chain of nodes whose tensors have hostile names, in a subgraph with one."""
    builder = ModelBuilder(HOSTILE[0])
    graph = builder.add_subgraph(HOSTILE[0])
    x = graph.add_tensor(HOSTILE[0], "float32", [1, 4])
    graph.set_inputs(x)
    for place, name in enumerate(HOSTILE * 4):
        y = graph.add_tensor(f"{name}/{place}/{name}", "float32", [1, 4])
        graph.add_operator("TANH" if place % 2 else "RELU", [x], [y])
        x = y
    graph.set_outputs(x)
    return builder.to_bytes()
