"""Version rules of elementwise operators and of operators over an axis: arithmetic, activations, reductions, conversions."""

from __future__ import annotations

from oplet.schema.enums import BuiltinOperator as Op
from oplet.schema.enums import TensorType as T
from oplet.schema.options import AddOptions, FakeQuantOptions, SubOptions
from oplet.versions.signature import (
    FLOAT8,
    Condition,
    Rule,
    Rules,
    broadcasts_beyond_4d,
    by_input,
    input_is,
    one_scale_per,
    option,
    output_is,
    quantized,
    rescale_over_1,
)

__all__ = ["RULES"]

_INT16_THROUGHOUT = input_is(0, T.INT16) & output_is(0, T.INT16)
_BROADCAST = "broadcasting more than 4 dimensions"


def _either(*wanted: T) -> Condition:
    """Make a condition: the first input or the first output of the node has one of these types."""
    return input_is(0, *wanted) | output_is(0, *wanted)


RULES: Rules = {
    (Op.ADD,): (
        by_input(6, T.FLOAT16),
        Rule(5, "INT16 input without quantization", input_is(0, T.INT16) & ~quantized(0)),
        by_input(4, T.INT64),
        Rule(3, "INT16 with any scale", _INT16_THROUGHOUT & option(AddOptions, "pot_scale_int16", False)),
        by_input(2, T.INT8),
    ),
    (Op.SUB,): (
        Rule(5, "INT16 with any scale", _INT16_THROUGHOUT & option(SubOptions, "pot_scale_int16", False)),
        by_input(4, T.INT64),
        Rule(3, _BROADCAST, broadcasts_beyond_4d),
        by_input(2, T.INT8),
    ),
    (Op.MUL,): (
        by_input(8, T.FLOAT16),
        Rule(
            7,
            "UINT32 input, or INT16 input without quantization",
            (input_is(0, T.INT16) & ~(quantized(0) | quantized(1))) | input_is(0, T.UINT32),
        ),
        by_input(6, T.COMPLEX64),
        by_input(5, T.INT64),
        by_input(4, T.INT16),
        Rule(3, "a rescale of 1 or more", rescale_over_1),
        by_input(2, T.INT8),
    ),
    (Op.DIV,): (Rule(2, _BROADCAST, broadcasts_beyond_4d),),
    (Op.FLOOR_DIV,): (by_input(3, T.INT16, T.INT8), by_input(2, T.FLOAT32)),
    (Op.FLOOR_MOD,): (by_input(2, T.INT16, T.INT8),),
    (Op.MAXIMUM, Op.MINIMUM): (
        Rule(4, "INT16 input and output", _INT16_THROUGHOUT),
        Rule(3, _BROADCAST, broadcasts_beyond_4d),
        by_input(2, T.INT8),
    ),
    (Op.EQUAL,): (by_input(5, T.INT16), by_input(3, T.STRING), by_input(2, T.INT8)),
    (Op.NOT_EQUAL,): (by_input(4, T.INT16), by_input(3, T.STRING), by_input(2, T.INT8)),
    (Op.LESS, Op.GREATER_EQUAL): (by_input(3, T.INT16), by_input(2, T.INT8)),
    (Op.GREATER, Op.LESS_EQUAL, Op.SQUARED_DIFFERENCE, Op.LOG_SOFTMAX, Op.SUM): (by_input(2, T.INT8),),
    (Op.MAX_POOL_2D, Op.AVERAGE_POOL_2D, Op.TANH, Op.LOGISTIC): (
        Rule(3, "INT16 input and output", _INT16_THROUGHOUT),
        by_input(2, T.INT8),
    ),
    (Op.MEAN, Op.REDUCE_MAX, Op.REDUCE_MIN, Op.RELU6, Op.RSQRT): (by_input(3, T.INT16), by_input(2, T.INT8)),
    (Op.EXP, Op.LOG, Op.SQRT, Op.REDUCE_PROD): (by_input(2, T.INT8, T.INT16),),
    (Op.ARG_MAX, Op.ARG_MIN): (by_input(3, T.BOOL), by_input(2, T.INT8)),
    (Op.ABS,): (
        by_input(5, T.INT32),
        Rule(3, "INT16 input with quantization", input_is(0, T.INT16) & quantized(0)),
        Rule(4, "INT16 input without quantization", input_is(0, T.INT16)),
        by_input(2, T.INT8, T.UINT8),
    ),
    (Op.SIGN,): (by_input(2, T.INT32),),
    (Op.SIN, Op.COS): (by_input(2, T.FLOAT16),),
    (Op.RELU,): (by_input(3, T.INT16), by_input(2, T.INT8, T.UINT8)),
    (Op.LEAKY_RELU,): (by_input(2, T.INT16),),
    (Op.GELU,): (by_input(3, T.FLOAT16), by_input(2, T.INT8, T.UINT8)),
    (Op.SOFTMAX,): (by_input(4, T.FLOAT16), by_input(3, T.INT16), by_input(2, T.INT8)),
    (Op.L2_NORMALIZATION,): (Rule(2, "INT8 output", output_is(0, T.INT8)),),
    (Op.FAKE_QUANT,): (Rule(2, "narrow_range", option(FakeQuantOptions, "narrow_range")),),
    (Op.DEQUANTIZE,): (
        by_input(9, *FLOAT8),
        by_input(8, T.UINT4),
        by_input(7, T.INT2),
        by_input(6, T.INT4),
        by_input(3, T.INT16, T.FLOAT16),
        Rule(5, "per-channel INT8 input", input_is(0, T.INT8) & one_scale_per(None, input=0, several=True)),
        by_input(2, T.INT8),
    ),
    (Op.QUANTIZE,): (
        Rule(5, "UINT4", _either(T.UINT4)),
        Rule(4, "INT4", _either(T.INT4)),
        Rule(3, "per-channel output", one_scale_per(None, output=0, several=True)),
        Rule(2, "INT16 output", output_is(0, T.INT16)),
    ),
    (Op.CAST,): (
        Rule(9, "an 8-bit float", _either(*FLOAT8)),
        Rule(8, "INT2 or UINT4", _either(T.INT2, T.UINT4)),
        Rule(7, "BFLOAT16", _either(T.BFLOAT16)),
        Rule(6, "INT4 to FLOAT32", input_is(0, T.INT4) & output_is(0, T.FLOAT32)),
        Rule(5, "FLOAT64 or FLOAT16", _either(T.FLOAT64, T.FLOAT16)),
        Rule(4, "UINT16", _either(T.UINT16)),
        Rule(3, "INT8", _either(T.INT8)),
        Rule(2, "UINT32", _either(T.UINT32)),
    ),
}
