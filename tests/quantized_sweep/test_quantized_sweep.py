"""Quantized nets with dead parts give what one of LiteRT's three ways gives; whatever LiteRT runs, oplet runs."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.differential.worker import Answer

pytest.importorskip("ai_edge_litert")

from .cells import CELLS, cell_nets
from .draft import Net
from .floats import FLOATS, UNARIES, float_difference, float_net, power_net
from .layers import LAYERS, layer_nets
from .operators import OPERATORS, nets_of
from .sweep import BATCH, LiteRT, Sweep, engines, run_net

#: Of the nets of an operator, the fast form takes so many, the slow one each so manieth.
FEW, EACH = 2, 7


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    found = LiteRT()
    yield found
    found.close()


def nets(label: str) -> list[Callable[[], Net | None]]:
    """What makes the nets of an operator or a layer, all of them."""
    make = cell_nets if label in CELLS else layer_nets if label in LAYERS else nets_of
    return list(make(label))


def some(label: str, count: int) -> list[Callable[[], Net | None]]:
    """A few nets, spread over all, in other places for each operator."""
    every = nets(label)
    step = max(1, len(every) // count)
    return every[zlib.crc32(label.encode()) % step :: step][:count]


@pytest.mark.sweep
def test_whatever_litert_runs_of_dead_parts_oplet_runs_alike(litert: LiteRT) -> None:
    sweep = Sweep(litert)
    sweep.check(itertools.chain.from_iterable(some(label, FEW) for label in (*OPERATORS, *LAYERS, *CELLS)))
    assert not sweep.failures, "\n".join(sweep.failures)
    assert sweep.seen["compared"] > len(OPERATORS)


@pytest.mark.sweep
@pytest.mark.parametrize("label", [*OPERATORS, *LAYERS, *CELLS])
def test_a_seventh_of_all_nets_with_dead_parts(litert: LiteRT, label: str) -> None:
    every = nets(label)
    sweep = Sweep(litert)
    sweep.check(every[zlib.crc32(label.encode()) % EACH :: EACH] if len(every) > BATCH else every)
    print(f"{label}: {dict(sweep.seen)}")
    assert not sweep.failures, "\n".join(sweep.failures)


@pytest.mark.parametrize("type", FLOATS)
def test_float_operators_agree_where_values_are_not_finite_or_at_the_ends_of_their_type(litert: LiteRT, type: str) -> None:
    found = [(float_net(label, type), unary.finer) for label, unary in UNARIES.items()] + [(power_net(type), 0.0)]
    failures, compared = [], 0
    for (net, finer), theirs in zip(found, litert.run([net for net, _ in found])):
        ran = [answer for answer in theirs if answer.kind == "ran"]
        for engine, plugins in engines().items():
            ours = run_net(net, plugins)
            if not ran or (ours.kind == "refused" and type == "float16"):
                continue  # float16 is refused by some of the kernels
            compared += 1
            difference = ours.message if ours.kind != "ran" else float_difference(net, ours, ran, finer)
            if difference:
                failures.append(f"{engine}: {difference}")
    assert compared > 10
    assert not failures, "\n".join(failures)


def test_of_float16_the_exact_value_is_right_whatever_litert_answers_on_this_processor() -> None:
    net = float_net("LOG", "float16")
    values = net.steps[0][0]
    with np.errstate(all="ignore"):
        exact = np.log(values.astype(np.float64)).astype(np.float16)
    least = np.abs(values) == np.float16(6e-8)
    assert exact[least & (values > 0)].tolist() == [-16.640625]
    odd = np.where(least, np.float16(-10.75), exact)  # as some processors have it
    ours, theirs = Answer("ran", [[exact]], ""), Answer("ran", [[odd]], "")
    assert float_difference(net, ours, [theirs], 0.0) == ""
    assert "-10.75, exact -16.63" in float_difference(net, theirs, [theirs], 0.0)
