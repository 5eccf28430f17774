"""What is public for packages of compiled kernels: what the numpy kernels' `prepare` computes, readable from outside.

A compiled kernel takes the place of a numpy one whose `prepare`, or the checks of it, runs first, as in `oplet_compiled_ops`.
Three things of this package are public for that: the registrations of operators (`oplet_builtin_ops.ops`, `oplet_builtin_ops.FAMILIES`), `oplet_builtin_ops.VERSIONS`,
and the names below, of modules that the numpy kernels of their operators import anyway. All else may change with any version.

    module                        names  what they are
    layers.convolutions_2d        Convolution, check_convolution, check_depthwise  what checks find, without the rest of `prepare`
    layers.quantized_layer        QuantizedLayer  the `layer` of a `Convolution`, and of those in `rows`
    layers.hybrid_layer           HybridLayer  the `layer` of a `Convolution`, and of those in `rows`
    layers.blocks                 block_scales  the scales of a `Convolution` of blocks
    ops.fully_connected           check_rows  FULLY_CONNECTED: what its checks find; of integer weights: `layer`
    elementwise.binary_arithmetic  SumScaling, ProductScaling  ADD, SUB and MUL of quantized numbers: `node.prepared`
    arithmetic.lookup             refuse_below  SQRT and RSQRT: the error of quantized values below the zero point
    elementwise.comparison        scaled_values  comparisons: what quantized numbers are compared as, if `node.prepared` is true
    elementwise.pairwise          refuse_zero  FLOOR_DIV and FLOOR_MOD: the error of divisors that are zero
    arithmetic.quantized_softmax  Softmax8, LogSoftmax8, Softmax16  SOFTMAX and LOG_SOFTMAX of integers: `node.prepared`
    arithmetic.quantization       wraps_large_values  QUANTIZE: what becomes of values beyond int32
    shaping.interpolation         float_neighbours, integer_neighbours  RESIZE_BILINEAR: where each output lies between which inputs
    shaping.positions             row_finder  SCATTER_ND: the rows that vectors of indices mean
    shaping.bounds                box, refuse_begin, refuse_position  GATHER, SLICE, STRIDED_SLICE: the errors of positions beyond their axes
    ops.embedding_lookup          ensure_row, is_plain, row_scales  EMBEDDING_LOOKUP: a table's scales; the error of a row beyond it
    ops.strided_slice             taken_axes  STRIDED_SLICE: the axes of which one position is taken
    shaping.joined_slices         JoinedSlices  CONCATENATION that absorbs slices: `node.prepared`
    recurrent.lstm_float          FloatLstm  LSTM of floats: `node.prepared`; BIDIRECTIONAL_SEQUENCE_LSTM: its second and third part
    recurrent.rnn_cell            RnnCell  RNN: `node.prepared`; BIDIRECTIONAL_SEQUENCE_RNN: its second and third part
    recurrent.recurrent_products  Product, stacked  in both: their products with weights
    recurrent.sequences           Layout  in both: how sequences lie in memory
    layers.program                Call, run_calls  numpy calls that a compiled kernel makes before or after its own

Other prepared nodes hold tuples of numbers and arrays, which the module of the operator shows; those of a quantized operator of one operand
hold the table of its results, by the bits of the value.
"""
