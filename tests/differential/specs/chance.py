"""Random numbers: with a seed, the very same ones."""

from __future__ import annotations

from oplet.schema.enums import RngAlgorithm
from oplet.schema.options import RandomOptions
from oplet.schema.stablehlo_options import StablehloRngBitGeneratorOptions

from ..harness import Case
from ..strategies import F32, F64, I32, I64, U32, U64, Draw, out, spec


def _seeds(draw: Draw) -> RandomOptions:
    """Seeds, not both 0, which asks for other numbers each time. LiteRT keeps 32 bits of each."""
    return RandomOptions(seed=draw.pick(1, 7, -3, 2**40, 0), seed2=draw.pick(5, 1, 2**33 + 1, -9))


@spec("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
def random(draw: Draw) -> Case:
    shape = draw.given(draw.shape(0, 3, 6))
    return draw.one_op([shape], [out(draw.type(F32))], _seeds(draw), steps=2)


@spec("MULTINOMIAL")
def multinomial(draw: Draw) -> Case:
    logits = draw.tensor(draw.type(F32), (draw.integer(1, 3), draw.integer(1, 5)), -3, 3)
    count = draw.given(draw.integer(0, 6) if not draw.seldom(20) else -1)
    return draw.one_op([logits, count], [out(draw.pick(I32, I64))], _seeds(draw), steps=2)


@spec("STABLEHLO_RNG_BIT_GENERATOR")
def rng_bit_generator(draw: Draw) -> Case:
    algorithm = draw.pick(RngAlgorithm.THREEFRY, RngAlgorithm.PHILOX, RngAlgorithm.DEFAULT)
    size = 2 if algorithm is RngAlgorithm.THREEFRY else draw.pick(2, 3)
    if draw.seldom(20):
        size = draw.pick(1, 4)
    state = draw.tensor(U64, (size,), constant=draw.flag())
    state.flexible = False
    outputs = [out(U64, (size,)), out(draw.type(I32, U32, I64, U64) if not draw.seldom(20) else F64, draw.shape(0, 3))]
    return draw.one_op([state], outputs, StablehloRngBitGeneratorOptions(algorithm=algorithm), steps=2)
