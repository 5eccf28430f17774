"""Public names for packages of compiled kernels: what the numpy kernels' `prepare` computes, readable from outside.

A compiled kernel takes the place of a numpy one whose `prepare`, or the checks of it, runs first (`oplet_compiled_ops` is such a package).
Three things of this package are public for that: the `REGISTRATION` of each module of `oplet_builtin_ops.ops`, `oplet_builtin_ops.VERSIONS`,
and the names that the modules of this folder list in `__all__`. All else may change with any version. A module here has no code of its own and
imports only what the numpy kernels of its operators import anyway, so that a model still loads no more than its operators need.

    module            what it names                              where it is found
    convolutions      Convolution, check_convolution             CONV_2D: what its checks find, without the rest of `prepare`
    depthwise         check_depthwise                            DEPTHWISE_CONV_2D: the same, a `Convolution` too
    layers            QuantizedLayer, HybridLayer, block_scales  the `layer` of a `Convolution`, and of those in `rows`
    rows              check_rows                                 FULLY_CONNECTED: what its checks find; of integer weights: `layer`
    pairs             SumScaling, ProductScaling                 ADD, SUB and MUL of quantized numbers: `node.prepared`
    tables            refuse_below                               SQRT and RSQRT: the error of quantized values below the zero point
    comparisons       scaled_values                              comparisons: what quantized numbers are compared as, if `node.prepared` is true
    divisors          refuse_zero                                FLOOR_DIV and FLOOR_MOD: the error of divisors that are zero
    softmax           Softmax8, LogSoftmax8, Softmax16           SOFTMAX and LOG_SOFTMAX of integers: `node.prepared`
    quantization      wraps_large_values                         QUANTIZE: what becomes of values beyond int32
    interpolation     float_neighbours, integer_neighbours       RESIZE_BILINEAR: where each output lies between which inputs
    positions         row_finder                                 SCATTER_ND: the rows that vectors of indices mean
    bounds            box, refuse_begin, refuse_position         GATHER, SLICE, STRIDED_SLICE: the errors of positions that leave their axes
    embeddings        ensure_row, is_plain, row_scales           EMBEDDING_LOOKUP: a table's scales, and the error of a row that it has not
    slices            taken_axes                                 STRIDED_SLICE: the axes of which one position is taken
    joining           JoinedSlices                               CONCATENATION that absorbs slices: `node.prepared`
    lstm              FloatLstm                                  LSTM of floats: `node.prepared`; BIDIRECTIONAL_SEQUENCE_LSTM: its second and third part
    rnn               RnnCell                                    RNN: `node.prepared`; BIDIRECTIONAL_SEQUENCE_RNN: its second and third part
    recurrence        Product, Layout, stacked                   in both: their products with weights, and how sequences lie in memory
    programs          Call, run_calls                            numpy calls that a compiled kernel makes before or after its own

Other prepared nodes hold tuples of numbers and arrays, which the module of the operator shows; those of a quantized operator of one operand
hold the table of its results, by the bits of the value.
"""
