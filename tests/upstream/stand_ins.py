"""Models in the places of those that ai-edge-quantizer's tests open and its wheel does not ship.

Each has the operators, the shapes and the names of tensors and signatures that the tests speak of, and weights of its own. Tests that
need what a model learned, or a large model, have none here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.upstream.stand_in_parts import (
    RELU,
    RELU6,
    add_and_multiply,
    by_constant,
    deconvolved,
    dense,
    dense_and_logistic,
    depthwise,
    digits,
    emptied,
    gathered,
    integers,
    joined,
    keras_dense,
    looked_up,
    one,
    parted,
    pooled,
    positioned,
    products,
    reduced,
    selected,
    shaped,
    shared,
    single,
    slice_,
    strided,
    transposed,
    two,
    updated,
)

from oplet.builder import ModelBuilder
from oplet.schema import options as o
from oplet.schema.enums import MirrorPadMode

PAD = integers([[0, 2], [2, 2]])

#: What makes each model, by the file's name.
MODELS: dict[str, Callable[[], ModelBuilder]] = {
    "bmm": lambda: products(False),
    "bmm_constant_input": lambda: products(True),
    "constant_tensor_and_buffer_only_sharing_weight_fcs": lambda: shared(True),
    "conv_fc_mnist": digits,
    "dynamic_update_slice": updated,
    "embedding_lookup": looked_up,
    "padv2_inf_max_pool_2d": lambda: pooled(True),
    "reshape_with_empty_shape": emptied,
    "single_add": lambda: two("ADD", [None, 32, 32], o.AddOptions(), "input_{}", "add"),
    "single_add1_constant_input": lambda: by_constant("ADD", o.AddOptions(), [32, 32], "output"),
    "single_broadcast_to": lambda: shaped("BROADCAST_TO", [1, 3], [2, 3], None, integers(2, 3)),
    "single_conv2d_transpose_bias": deconvolved,
    "single_depthwise_conv2d_bias": depthwise,
    "single_div": lambda: two("DIV", [2, 3], o.DivOptions()),
    "single_equal": lambda: two("EQUAL", [2, 3], dtype="bool"),
    "single_fc": keras_dense,
    "single_fc_bias": lambda: dense("input_2", [1, 2, 8], 4),
    "single_fc_bias_logistic": dense_and_logistic,
    "single_fc_bias_relu": lambda: dense(
        "input_2", [1, 2, 8], 4, o.FullyConnectedOptions(keep_num_dims=True, fused_activation_function=RELU)
    ),
    "single_fc_bias_relu6": lambda: dense(
        "input_2", [1, 2, 8], 4, o.FullyConnectedOptions(keep_num_dims=True, fused_activation_function=RELU6)
    ),
    "single_fc_no_bias": lambda: dense("fixed_input", [1, 2, 8], 4, None, False, "sequential_3"),
    "single_gather": lambda: shaped("GATHER", [3, 4], [2, 4], o.GatherOptions(), integers(0, 2)),
    "single_gather_nd_with_const_indices": gathered,
    "single_gather_nd_with_const_params": positioned,
    "single_gelu": lambda: one("GELU", [1, 1, 10], o.GeluOptions(), "input_6", "activation_4"),
    "single_hard_swish": lambda: one("HARD_SWISH", [2, 3]),
    "single_max_pool_2d": lambda: pooled(False),
    "single_maximum": lambda: two("MAXIMUM", [2, 3]),
    "single_mean": lambda: reduced("MEAN", [None, 32, 32], [None, 32], "tf.math.reduce_mean", integers(1)),
    "single_mul": lambda: two("MUL", [None, 32, 32], o.MulOptions(), "input_{}", "multiply"),
    "single_mul2_constant_input": lambda: by_constant("MUL", o.MulOptions(), [None, 32, 32], "multiply"),
    "single_not_equal": lambda: two("NOT_EQUAL", [2, 3], dtype="bool"),
    "single_pack": lambda: joined("PACK", "input{}", [3, 4], [2, 3, 4], o.PackOptions(values_count=2), "output"),
    "single_pad": lambda: shaped("PAD", [2, 4], [4, 8], None, PAD),
    "single_padv2": lambda: shaped("PADV2", [2, 4], [4, 8], None, PAD, np.float32(0.5)),
    "single_reduce_min": lambda: reduced("REDUCE_MIN", [3, 4], [3], "output", integers([1]), source="input1"),
    "single_relu": lambda: one("RELU", [2, 3]),
    "single_resize_bilinear": lambda: shaped(
        "RESIZE_BILINEAR", [1, 2, 4, 1], [1, 3, 5, 1], o.ResizeBilinearOptions(), integers(3, 5)
    ),
    "single_resize_nearest_neighbor": lambda: shaped(
        "RESIZE_NEAREST_NEIGHBOR", [1, 2, 4, 1], [1, 3, 5, 1], o.ResizeNearestNeighborOptions(), integers(3, 5)
    ),
    "single_rsqrt": lambda: one("RSQRT", [None, 32, 32], None, "input_1", "tf.math.rsqrt"),
    "single_select": lambda: selected("SELECT"),
    "single_select_v2": lambda: selected("SELECT_V2"),
    "single_slice": slice_,
    "single_space_to_depth": lambda: shaped("SPACE_TO_DEPTH", [1, 8, 8, 1], [1, 4, 4, 4], o.SpaceToDepthOptions(block_size=2)),
    "single_split": lambda: parted("SPLIT"),
    "single_sqrt": lambda: one("SQRT", [2, 3]),
    "single_squared_difference": lambda: single(
        "SQUARED_DIFFERENCE",
        [("serving_default_input_1:0", [2, 4, 2]), ("serving_default_input_2:0", [1, 2])],
        ("PartitionedCall:0", [2, 4, 2]),
    ),
    "single_strided_slice": strided,
    "single_sub": lambda: two("SUB", [None, 32, 32], o.SubOptions(), "input_{}", "subtract"),
    "single_sub1_constant_input": lambda: by_constant("SUB", o.SubOptions(), [None, 32, 32], "subtract"),
    "single_sum": lambda: reduced("SUM", [None, 2, 3], [2, 3], "tf.math.reduce_sum", integers(0)),
    "single_symmetric_pad": lambda: shaped(
        "MIRROR_PAD",
        [1, 2, 4, 3],
        [1, 4, 8, 3],
        o.MirrorPadOptions(mode=MirrorPadMode.SYMMETRIC),
        integers([[0, 0], [1, 1], [2, 2], [0, 0]]),
    ),
    "single_tanh": lambda: one("TANH", [1, 2, 3, 4], None, "input_3", "activation"),
    "single_transpose": lambda: transposed("float32"),
    "single_transpose_int32": lambda: transposed("int32"),
    "single_unpack": lambda: parted("UNPACK"),
    "two_inputs_concatenation": lambda: joined(
        "CONCATENATION", "input_{}", [1, 10, 20, 30], [1, 10, 20, 60], o.ConcatenationOptions(axis=3), "concatenate"
    ),
    "two_signatures": add_and_multiply,
    "weight_sharing_fcs": lambda: shared(False),
}


def write(folder: Path) -> int:
    """Write the models into the folder; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        make().save(folder / f"{name}.tflite")
    return len(MODELS)
