"""Version rules of operators with weights: convolutions, matrix products, lookups and recurrent networks."""

from __future__ import annotations

from oplet.schema.enums import BuiltinOperator as Op
from oplet.schema.enums import FullyConnectedOptionsWeightsFormat, LSTMKernelType
from oplet.schema.enums import TensorType as T
from oplet.schema.options import (
    BatchMatMulOptions,
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    LSTMOptions,
    RNNOptions,
    SequenceRNNOptions,
    SVDFOptions,
    TransposeConvOptions,
    UnidirectionalSequenceLSTMOptions,
)
from oplet.schema.table import Table
from oplet.versions.signature import (
    Condition,
    Rule,
    Rules,
    by_input,
    grouped,
    input_count,
    input_is,
    one_scale_per,
    option,
    output_is,
    present,
    sparse,
    types,
)

__all__ = ["RULES"]

_HYBRID = types(T.FLOAT32, T.INT8, T.FLOAT32)
_FULL_INT8 = types(T.INT8, T.INT8, T.INT8)
_INT4_WEIGHTS = types(T.INT8, T.INT4, T.INT8)
# The default of quantized_bias_type, FLOAT32, means unset to LiteRT's kernels, but a bias type to its rules.
_INT16X8 = types(T.INT16, T.INT8, T.INT16)
# LiteRT's rules require INT16 weights, although the versions came with the kernels for INT8 weights: a 16x8 node would get a lower
# version, of runtimes that cannot run it. In convolutions they look at output 1, which does not exist; output 0 is meant.
_INT16 = types(T.INT16, (T.INT8, T.INT16), T.INT16)


def _recurrent(hybrid: Condition, asymmetric: Condition) -> tuple[Rule, ...]:
    return (
        Rule(3, "int8 weights, float output, asymmetric quantization of the inputs", hybrid & asymmetric),
        Rule(2, "int8 weights, float output", hybrid),
    )


def _rnn(options: type[Table]) -> tuple[Rule, ...]:
    return _recurrent(input_is(1, T.INT8) & output_is(0, T.FLOAT32), option(options, "asymmetric_quantize_inputs"))


def _gates(input: T, weights: T, output: T) -> Condition:
    """Make a condition on a recurrent node's types: of input 0, of the weights (input 2), and of the output."""
    return input_is(0, input) & input_is(2, weights) & output_is(0, output)


_LSTM_FULL = option(LSTMOptions, "kernel_type", LSTMKernelType.FULL)

RULES: Rules = {
    (Op.CONV_2D,): (
        Rule(8, "16x8 with a bias type", _INT16X8 & option(Conv2DOptions, "quantized_bias_type")),
        Rule(6, "grouped convolution", grouped),
        Rule(4, "int16 input and output", _INT16),
        Rule(3, "int8 input and weights", _FULL_INT8),
        Rule(7, "int4 weights with int8 input", _INT4_WEIGHTS),
        Rule(5, "per-channel int8 weights with float input", _HYBRID & one_scale_per(0, input=1)),
        Rule(2, "int8 weights with float input", _HYBRID),
    ),
    (Op.DEPTHWISE_CONV_2D,): (
        Rule(5, "int16 input and output", _INT16),
        Rule(6, "per-channel int8 weights with float input", _HYBRID & one_scale_per(3, input=1)),
        Rule(4, "int8 weights with float input", _HYBRID),
        Rule(3, "int8 input and weights", _FULL_INT8),
        Rule(7, "int4 weights with int8 input", _INT4_WEIGHTS),
        Rule(
            2,
            "dilation",
            ~option(DepthwiseConv2DOptions, "dilation_w_factor", 1) | ~option(DepthwiseConv2DOptions, "dilation_h_factor", 1),
        ),
    ),
    (Op.TRANSPOSE_CONV,): (
        Rule(5, "16x8 with a bias type", _INT16X8 & option(TransposeConvOptions, "quantized_bias_type")),
        Rule(4, "fused activation", option(TransposeConvOptions, "fused_activation_function")),
        Rule(3, "bias", input_count(4) & present(3)),
        Rule(2, "int8 weights", input_is(1, T.INT8)),
    ),
    (Op.FULLY_CONNECTED,): (
        Rule(14, "int2 weights", input_is(1, T.INT2)),
        Rule(13, "int4 weights with int16 input", types(T.INT16, T.INT4, T.INT16)),
        Rule(12, "per-channel int8 weights with float input", _HYBRID & one_scale_per(0, input=1)),
        Rule(11, "16x8 with a bias type", _INT16X8 & option(FullyConnectedOptions, "quantized_bias_type")),
        Rule(8, "sparse weights", sparse(1)),
        Rule(7, "int16 input and output", _INT16),
        Rule(6, "two inputs, no bias", input_count(2)),
        Rule(5, "keep_num_dims", option(FullyConnectedOptions, "keep_num_dims")),
        Rule(4, "int8 input and weights", _FULL_INT8),
        Rule(10, "int4 weights with int8 input", _INT4_WEIGHTS),
        Rule(
            9,
            "int8 weights with float input, asymmetric quantization of the input",
            _HYBRID & option(FullyConnectedOptions, "asymmetric_quantize_inputs"),
        ),
        Rule(3, "int8 weights with float input", _HYBRID),
        Rule(
            2,
            "shuffled weights",
            option(FullyConnectedOptions, "weights_format", FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8),
        ),
    ),
    (Op.BATCH_MATMUL,): (
        by_input(3, T.INT16),
        by_input(2, T.INT8),
        Rule(
            4,
            "int8 weights with float input, asymmetric quantization of the input",
            _HYBRID & option(BatchMatMulOptions, "asymmetric_quantize_inputs"),
        ),
    ),
    (Op.EMBEDDING_LOOKUP,): (
        Rule(4, "int4 or per-row quantized table", input_is(1, T.INT4) | one_scale_per(0, input=1, several=True)),
        Rule(5, "int2 table", input_is(1, T.INT2)),
    ),
    (Op.SVDF,): (
        by_input(3, T.INT8),
        Rule(
            4,
            "int8 weights with float input, asymmetric quantization of the input",
            _HYBRID & option(SVDFOptions, "asymmetric_quantize_inputs"),
        ),
        Rule(2, "int8 weights with float input", _HYBRID),
    ),
    (Op.RNN,): _rnn(RNNOptions),
    (Op.UNIDIRECTIONAL_SEQUENCE_RNN,): _rnn(SequenceRNNOptions),
    (Op.BIDIRECTIONAL_SEQUENCE_RNN,): _rnn(BidirectionalSequenceRNNOptions),
    (Op.BIDIRECTIONAL_SEQUENCE_LSTM,): _rnn(BidirectionalSequenceLSTMOptions),
    (Op.UNIDIRECTIONAL_SEQUENCE_LSTM,): (
        Rule(5, "int16 input with int8 weights", _gates(T.INT16, T.INT8, T.INT16)),
        Rule(4, "diagonal recurrent weights", option(UnidirectionalSequenceLSTMOptions, "diagonal_recurrent_tensors")),
        *_recurrent(
            _gates(T.FLOAT32, T.INT8, T.FLOAT32), option(UnidirectionalSequenceLSTMOptions, "asymmetric_quantize_inputs")
        ),
    ),
    (Op.LSTM,): (
        Rule(5, "int16 input with int8 weights", _LSTM_FULL & _gates(T.INT16, T.INT8, T.INT16)),
        Rule(
            4,
            "int8 weights with float input, asymmetric quantization of the input",
            _LSTM_FULL & _gates(T.FLOAT32, T.INT8, T.FLOAT32) & option(LSTMOptions, "asymmetric_quantize_inputs"),
        ),
        Rule(3, "int8 weights with float input", _LSTM_FULL & _gates(T.FLOAT32, T.INT8, T.FLOAT32)),
        Rule(2, "the basic kernel", option(LSTMOptions, "kernel_type", LSTMKernelType.BASIC)),
    ),
}
