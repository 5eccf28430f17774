"""Control flow: nodes that run other subgraphs, which become part of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from oplet import Node
from oplet.schema.options import IfOptions, WhileOptions
from oplet.schema.stablehlo_options import StablehloCaseOptions, StablehloWhileOptions
from oplet_xla_delegate.tracing import Trace
from oplet_xla_delegate.translators import MOVED, translates

_MANY = (1, 4096)


def _branches(trace: Trace, node: Node, place: Any, indices: list[int], values: tuple[Any, ...]) -> list[Any]:
    """Run one of several subgraphs."""

    def branch(index: int) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            made, overrun = trace.call(index, given)
            return [value.reshape(tensor.shape) for value, tensor in zip(made, node.outputs)], overrun

        return run

    made, overrun = lax.switch(place, [branch(index) for index in indices], *values)
    trace.overrun = trace.overrun | overrun
    return list(made)


def _if_bodies(node: Node) -> list[int]:
    options = node.options(IfOptions)
    return [options.else_subgraph_index, options.then_subgraph_index]


@translates("IF", inputs=_MANY, outputs=None, types=MOVED, moves=True, bodies=_if_bodies)
def _if(trace: Trace, node: Node, condition: Any, *values: Any) -> list[Any]:
    return _branches(trace, node, condition.reshape(()).astype(jnp.int32), _if_bodies(node), values)


def _case_bodies(node: Node) -> list[int]:
    found = node.options(StablehloCaseOptions).branch_subgraph_indices
    return [] if found is None else found.tolist()


@translates("STABLEHLO_CASE", inputs=_MANY, outputs=None, types=MOVED, moves=True, bodies=_case_bodies)
def stablehlo_case(trace: Trace, node: Node, place: Any, *values: Any) -> list[Any]:
    """Return the outputs of STABLEHLO_CASE as traced jax values; an index out of range selects the last branch."""
    indices, place = _case_bodies(node), place.reshape(())
    last = len(indices) - 1
    return _branches(trace, node, jnp.where((place < 0) | (place > last), last, place), indices, values)


def _loop(read: Callable[[Node], list[int]]) -> Callable[..., list[Any]]:
    def translate(trace: Trace, node: Node, *values: Any) -> list[Any]:
        condition_index, body_index = read(node)

        def holds(variables: tuple[Any, ...]) -> tuple[Any, Any]:
            [flag], overrun = trace.call(condition_index, variables)
            return flag.reshape(()), overrun

        def goes_on(state: Any) -> Any:
            return state[0] & (state[1] < trace.limit)

        def step(state: Any) -> Any:
            _, count, overrun, variables = state
            made, inside = trace.call(body_index, variables)
            following = tuple(value.reshape(before.shape) for value, before in zip(made, variables))
            flag, asking = holds(following)
            return flag, count + jnp.int32(1), overrun | inside | asking, following

        flag, overrun = holds(values)
        flag, _, overrun, variables = lax.while_loop(goes_on, step, (flag, jnp.int32(0), overrun, values))
        trace.overrun = trace.overrun | overrun | flag
        return [value.reshape(tensor.shape) for value, tensor in zip(variables, node.outputs)]

    return translate


def _while_bodies(node: Node) -> list[int]:
    options = node.options(WhileOptions)
    return [options.cond_subgraph_index, options.body_subgraph_index]


def _stablehlo_while_bodies(node: Node) -> list[int]:
    options = node.options(StablehloWhileOptions)
    return [options.cond_subgraph_index, options.body_subgraph_index]


for _name, _read in {"WHILE": _while_bodies, "STABLEHLO_WHILE": _stablehlo_while_bodies}.items():
    translates(_name, inputs=_MANY, outputs=None, types=MOVED, moves=True, bodies=_read)(_loop(_read))
