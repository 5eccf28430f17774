"""The lowest version of a built-in operator that supports a node.

The rules are LiteRT's (tflite/converter/tools/versioning/op_version.cc). The rules of an operator are tried in order and the first one
that holds decides, so that a lower version may come before a higher one.

Three of LiteRT's rules contradict its kernels. Here they agree with the kernels, so that the versions neither admit a runtime that cannot
run the node nor exclude one that can:

- INT16 convolutions and products with INT8 weights need the version of the INT16 kernel; LiteRT asks for INT16 weights.
- An unset `quantized_bias_type` needs no version of its own; LiteRT treats its default, FLOAT32, as a type that is set.
- A quantization table without scales does not quantize; LiteRT tests only whether there is a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from oplet.schema.enums import BuiltinOperator
from oplet.schema.table import Table
from oplet.schema.tables import Tensor
from oplet.versions import rules_layout, rules_math, rules_weights
from oplet.versions.signature import Rule, Signature

__all__ = ["LOWEST", "RULES", "explain_version", "op_version"]

#: The rules of each operator that has more than one version.
RULES: dict[BuiltinOperator, tuple[Rule, ...]] = {
    op: rows
    for family in (rules_weights.RULES, rules_layout.RULES, rules_math.RULES)
    for ops, rows in family.items()
    for op in ops
}

#: Operators whose lowest version is not 1.
LOWEST: dict[BuiltinOperator, int] = {BuiltinOperator.BROADCAST_TO: 2}


def op_version(
    op: BuiltinOperator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor | None], options: Table | None
) -> int:
    """Return the lowest version of an operator that supports a node.

    Args:
        op: the operator.
        inputs: the node's inputs in order, None where one is omitted.
        outputs: the node's outputs in order.
        options: the node's options; None for the defaults.
    """
    return explain_version(op, inputs, outputs, options)[0]


def explain_version(
    op: BuiltinOperator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor | None], options: Table | None
) -> tuple[int, str]:
    """Return the version as `op_version` does, with the reason in a few words: (2, "dilation"). The reason of the operator's
    lowest version is "".

    Examples:
        >>> from oplet.schema.options import DepthwiseConv2DOptions
        >>> explain_version(BuiltinOperator.DEPTHWISE_CONV_2D, [], [], DepthwiseConv2DOptions(dilation_w_factor=2))
        (2, 'dilation')
    """
    node = Signature(inputs, outputs, options)
    for rule in RULES.get(op, ()):
        if rule.condition.holds(node):
            return rule.version, rule.reason
    return LOWEST.get(op, 1), ""
