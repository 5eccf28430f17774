"""The operators of Larq Compute Engine, for networks whose weights and activations are +1 and -1, in numpy.

Each is one module of `oplet_larq_ops.ops`, which is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, Node, Work, WorkTable, hookimpl

#: Precedence: after compiled kernels of the same operators, which take these for what they decline.
OPLET_TIER = "builtin"
#: The module of each operator; all are of version 1.
OPS: dict[str, str] = {
    "LceBMaxPool2d": "bmaxpool2d",
    "LceBconv2d": "bconv2d",
    "LceDequantize": "dequantize",
    "LceQuantize": "quantize",
}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators with the resolver, under their custom-op names in models."""
    for name, module in OPS.items():
        resolver.add_custom(name, f"{__name__}.ops.{module}:REGISTRATION")


@hookimpl
def register_work(table: WorkTable) -> None:
    """Register the functions that count the operators' work for profiles."""
    table.add("LceBconv2d", _convolution)
    table.add("LceBMaxPool2d", lambda node: Work(operations=32 * node.inputs[0].size))
    table.add("LceQuantize", lambda node: Work(operations=node.inputs[0].size))
    table.add("LceDequantize", lambda node: Work(operations=node.outputs[0].size))


def _convolution(node: Node) -> Work:
    """Count a binary convolution's work: every bit of every filter meets one of every window."""
    filters, output = node.inputs[1], node.outputs[0]
    windows = output.size // output.shape[-1] if output.size else 0
    return Work(macs=windows * filters.size * 32)
