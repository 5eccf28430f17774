"""Asks the installed LiteRT which operators it supports, so that new releases need no update of this package."""

from __future__ import annotations

from functools import cache

from ai_edge_litert.interpreter import Interpreter, OpResolverType

from oplet import BuiltinOperator, ModelBuilder

__all__ = ["CUSTOM_OPS", "serves"]

#: Custom ops that LiteRT's Python build brings, at version 1. A custom op that it lacks is found out only when a node is
#: prepared, and preparing one means running it on a node that fits: so these are written down.
CUSTOM_OPS = frozenset({"AudioSpectrogram", "Mfcc", "TFLite_Detection_PostProcess", "aeq.hadamard_rotation"})


@cache
def serves(op: BuiltinOperator, version: int) -> bool:
    """Return whether LiteRT has a kernel for a built-in operator in that version.

    LiteRT checks a model's operator codes when it opens it, so opening an empty model with this one shows it.
    """
    builder = ModelBuilder(minimum_runtime=False)
    builder.add_operator_code(op, version)
    graph = builder.add_subgraph()
    graph.set_inputs()
    graph.set_outputs()
    try:
        Interpreter(
            model_content=builder.to_bytes(),
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
    except ValueError:
        return False
    return True
