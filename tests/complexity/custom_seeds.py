"""Valid models of the operators that `fuzz.seeds` has none of: custom ones and composites. What cannot be guessed is data here."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from oplet.builder import pack_flexbuffer
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing import one_op_model
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

__all__ = ["custom_seeds"]

Operand = Spec | np.ndarray[Any, Any]


class _Node(NamedTuple):
    op: str
    inputs: Sequence[Operand]
    outputs: Sequence[Spec]
    options: dict[str, Any] | bytes
    version: int = 1


def _f32(*shape: int) -> Spec:
    return Spec("float32", shape)


def _i32(*shape: int) -> Spec:
    return Spec("int32", shape)


def _i16(*shape: int) -> Spec:
    return Spec("int16", shape)


def _u32(*shape: int) -> Spec:
    return Spec("uint32", shape)


def _shorts(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int16)


def _bytes(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.uint8)


_MATRIX = np.eye(4, dtype=np.float32)[None]
_FLAG = Spec("bool", [1])

_NOISE = {
    "num_channels": 4, "smoothing": 409, "one_minus_smoothing": 15975, "alternate_smoothing": 983,
    "alternate_one_minus_smoothing": 15401, "smoothing_bits": 10, "min_signal_remaining": 819, "clamping": False,
    "spectral_subtraction_bits": 14,
}  # fmt: skip
_CUT = {"scale_x": 1.5, "scale_y": 1.25, "left_rotation_idx": 0, "right_rotation_idx": 3}
_BANDS = [np.ones(n, np.int16) for n in (6, 6)] + [_shorts(0, 2), _shorts(0, 3), _shorts(2, 2)]

_NODES = (
    _Node("SignalWindow", [_i16(2, 4), _shorts(1, 2, 3, 4)], [_i16(2, 4)], {"shift": 12}),
    _Node("SignalEnergy", [_i16(8)], [_u32(4)], {"start_index": 0, "end_index": 4}),
    _Node("SignalFftAutoScale", [_i16(8)], [_i16(8), Spec("int32", [1])], {}),
    _Node("SignalFilterBank", [_u32(8), *_BANDS], [Spec("uint64", [1])], {"num_channels": 1}),
    _Node("SignalFilterBankLog", [_u32(4)], [_i16(4)], {"input_correction_bits": 3, "output_scale": 1600}),
    _Node("SignalFilterBankSpectralSubtraction", [_u32(4)], [_u32(4), _u32(4)], _NOISE),
    _Node("SignalFilterBankSquareRoot", [Spec("uint64", [4]), Spec("int32", [])], [_u32(4)], {}),
    _Node("SignalIrfft", [_i16(2, 18)], [_i16(2, 16)], {"T": 7, "fft_length": 16}),
    _Node("SignalRfft", [_f32(2, 16)], [_f32(2, 18)], {"T": 0, "fft_length": 16}),
    _Node("SignalRfft", [Spec("int32", [2, 16])], [Spec("int32", [2, 18])], {"T": 2, "fft_length": 16}),
    _Node("SignalOverlapAdd", [_i16(2, 3, 4)], [_i16(2, 6)], {"T": 7, "frame_step": 2}),
    _Node("SignalPCAN", [_u32(4), _u32(4), np.arange(128, dtype=np.int16)], [_u32(4)], {"snr_shift": 6}),
    _Node("SignalFramer", [_i16(2, 8)], [_i16(2, 3, 4), _FLAG], {"frame_size": 4, "frame_step": 2, "prefill": False}),
    _Node(
        "Convolution2DTransposeBias", [_f32(1, 2, 2, 1), np.ones((1, 2, 2, 1), np.float32), np.ones(1, np.float32)],
        [_f32(1, 4, 4, 1)], struct.pack("<3i", 1, 2, 2),
    ),
    _Node(
        "Landmarks2TransformMatrix", [_f32(1, 1, 1, 24)], [_f32(1, 4, 4)],
        {"dimensions": 3, "landmarks_range": 128, "bbox_size_multiplier": 1.5, "input_hw": [40, 60], "output_hw": [9, 17],
         "left_rotation_idx": 0, "right_rotation_idx": 3, "subset": [1, 2, 4, 5, 7]},
    ),
    _Node(
        "Landmarks2TransformMatrix", [_f32(1, 8, 3)], [_f32(1, 4, 4)],
        {"output_height": 8, "output_width": 16, "target_rotation_radians": 0.0, "subset_idxs": [1, 2, 4, 5, 7], **_CUT}, 2,
    ),
    _Node("MaxPoolingWithArgmax2D", [_f32(1, 4, 6, 2)], [_f32(1, 2, 3, 2)] * 2, struct.pack("<10i", 2, 2, 2, 2, 2, 0, 0, 0, 0, 0)),
    _Node("MaxUnpooling2D", [_f32(1, 2, 3, 2)] * 2, [_f32(1, 4, 6, 2)], struct.pack("<10i", 2, 2, 2, 2, 2, 0, 0, 0, 0, 0)),
    _Node("TransformLandmarks", [_f32(1, 5, 3), _f32(1, 4, 4)], [_f32(1, 5, 3)], b"", 2),
    _Node("TransformLandmarks", [_f32(1, 1, 1, 15), _f32(1, 4, 4)], [_f32(1, 1, 1, 15)], {"dimensions": 3}),
    _Node("TransformTensorBilinear", [_f32(1, 4, 4, 2), _MATRIX], [_f32(1, 3, 3, 2)], {"output_height": 3, "output_width": 3}, 2),
    _Node("TransformTensorBilinear", [_f32(1, 4, 4, 2), _f32(1, 4, 4)], [_f32(1, 3, 3, 2)], {"output_height": 3, "output_width": 3}, 2),
    _Node("TransformTensor", [_f32(1, 4, 4, 2), _MATRIX], [_f32(1, 3, 3, 2)], {"mode": "bilinear", "output_size": [3, 3]}),
    _Node(
        "Mfcc", [_f32(1, 2, 17), Spec("int32", [1])], [_f32(1, 2, 5)],
        {"upper_frequency_limit": 4000, "lower_frequency_limit": 20, "filterbank_channel_count": 10, "dct_coefficient_count": 5},
    ),
    _Node("NumericVerify", [Spec("int8", [4], 0.5, 3), _f32(4)], [_f32(4)], {"tolerance": 0.5, "log_if_failed": False}),
    _Node("aeq.hadamard_rotation", [_f32(2, 4)], [_f32(2, 4)], {"hadamard_size": 4, "random_binary_vector": [1, -1]}),
    _Node(
        "TFLite_Detection_PostProcess", [_f32(1, 5, 4), _f32(1, 5, 3), np.ones((5, 4), np.float32)], [_f32(1)] * 4,
        {
            "max_detections": 3, "max_classes_per_detection": 1, "detections_per_class": 2, "use_regular_nms": True,
            "nms_score_threshold": 0.0, "nms_iou_threshold": 0.5, "num_classes": 2, "y_scale": 10.0, "x_scale": 10.0,
            "h_scale": 5.0, "w_scale": 5.0,
        },
    ),
    _Node("LceQuantize", [_f32(2, 40)], [_i32(2, 2)], {}),
    _Node("LceDequantize", [_i32(2, 2)], [_f32(2, 40)], {}),
    _Node(
        "LceBconv2d", [_i32(1, 4, 4, 2), np.arange(36, dtype=np.int32).reshape(2, 3, 3, 2), *[np.ones(2, np.float32)] * 2, np.ones(2, np.int32)],
        [_f32(1, 4, 4, 2)],
        {
            "channels_in": 40, "dilation_height_factor": 1, "dilation_width_factor": 1, "fused_activation_function": 0, "pad_values": 0,
            "padding": 0, "stride_height": 1, "stride_width": 1,
        },
    ),
    _Node(
        "LceBMaxPool2d", [_i32(1, 4, 4, 2)], [_i32(1, 2, 2, 2)],
        {"padding": 0, "filter_height": 2, "filter_width": 2, "stride_height": 2, "stride_width": 2},
    ),
    _Node(
        "PosenetDecoderOp", [_f32(1, 3, 3, 17), _f32(1, 3, 3, 34), _f32(1, 3, 3, 64), _f32(1, 3, 3, 34)],
        [_f32(1, 2, 17, 2), _f32(1, 2, 17), _f32(1, 2), _f32(1), _f32(1, 2, 3, 3)],
        {"max_detections": 2, "score_threshold": 0.1, "stride": 16, "nms_radius": 20.0},
    ),
    _Node(
        "LiteRtMaxUnpooling2D", [_f32(1, 2, 3, 2), np.arange(12, dtype=np.int32).reshape(1, 2, 3, 2)], [_f32(1, 4, 6, 2)],
        struct.pack("<10i", 1, 2, 2, 2, 2, 0, 0, 0, 0, 0),
    ),
    _Node("TFLM_DECODE", [_bytes(0x1B, 0xE4), _bytes(0, 1, 0, 0, 1, 2, 4, *[0] * 9, 5, 6, 7, 8)], [Spec("int8", [8])], b""),
    _Node("TFLM_DECODE", [_bytes(0x5A), _bytes(2, 1, 0, 0, 1, *[0] * 11, 5, 6, 7, 8)], [Spec("int8", [8])], b""),
    _Node("TFLM_DECODE", [_bytes(0x5A), _bytes(1, 1, 0, 0, 1, *[0] * 11, 0, 0x88, 1, 0x88)], [Spec("int8", [8])], b""),
)  # fmt: skip


def custom_seeds() -> dict[str, bytes]:
    """The models by name."""
    models = {}
    for number, node in enumerate(_NODES):
        options = node.options if isinstance(node.options, bytes) else pack_flexbuffer(node.options) if node.options else b""
        name = f"{node.op.lower()}_{number}"
        models[name] = one_op_model(node.op, node.inputs, node.outputs, version=node.version, custom_options=options)
    return {**models, "attention": _attention(), **_norms()}


def _norms() -> dict[str, bytes]:
    layer = {"num_groups": 1, "channel_axis": 1, "epsilon": 1e-5}
    groups = {"num_groups": 2, "channel_axis": 3, "reduction_axes": [3], "epsilon": 1e-5}
    image = (2, 3, 4, 6)
    return {
        "rms_norm": _norm("odml.rms_norm", {"epsilon": 1e-5}, "x w", (2, 3, 6)),
        "layer_norm": _norm("odml.group_norm", layer, "x w b", (2, 3, 6)),
        "group_norm": _norm("odml.group_norm", groups, "x w b", image),
    }


def _norm(name: str, attributes: dict[str, Any], reads: str, shape: tuple[int, ...]) -> bytes:
    packed = np.frombuffer(pack_flexbuffer(attributes), np.uint8)
    options = StableHLOCompositeOptions(name=name, decomposition_subgraph_index=1, composite_attributes=packed)
    whole = {"x": _f32(*shape), **{each: _f32(shape[-1]) for each in reads.split()[1:]}, "y": _f32(*shape)}
    body = Graph(whole, reads, "y", [Op("ADD", "x w", "y")])
    return graph_model(Graph(whole, reads, "y", [Op("STABLEHLO_COMPOSITE", reads, "y", options)]), body)


def _attention() -> bytes:
    name = "odml.scaled_dot_product_attention"
    attributes = np.frombuffer(pack_flexbuffer({"scale": 0.5}), np.uint8)
    options = StableHLOCompositeOptions(name=name, decomposition_subgraph_index=1, composite_attributes=attributes)
    whole = {"q": _f32(1, 3, 2, 4), "k": _f32(1, 5, 2, 4), "v": _f32(1, 5, 2, 4), "m": _f32(1, 1, 3, 5), "y": _f32(1, 3, 2, 4)}
    body = Graph({**whole, "z": np.zeros((), np.float32)}, "q k v m", "y", [Op("MUL", "q z", "y")])
    return graph_model(Graph(whole, "q k v m", "y", [Op("STABLEHLO_COMPOSITE", "q k v m", "y", options)]), body)
