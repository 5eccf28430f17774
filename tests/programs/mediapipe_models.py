"""Small models of MediaPipe's tasks with random weights: classifiers of float32 and uint8, and detectors, with metadata by oplet's API."""

from __future__ import annotations

from typing import Any

import flatbuffers.flexbuffers as flex
import numpy as np

from oplet import Model, ModelBuilder
from oplet.model.builders.subgraph_builder import SubgraphBuilder
from oplet.schema.encode import encode
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Conv2DOptions, DepthwiseConv2DOptions, ReducerOptions, SoftmaxOptions
from oplet_tools.metadata.anchored import (
    FixedAnchor,
    FixedAnchorsSchema,
    ObjectDetectorOptions,
    SsdAnchorsOptions,
    TensorsDecodingOptions,
)
from oplet_tools.metadata.tables import (
    AssociatedFile,
    AssociatedFileType,
    BoundingBoxProperties,
    BoundingBoxType,
    ColorSpaceType,
    Content,
    CustomMetadata,
    ImageProperties,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    ScoreCalibrationOptions,
    ScoreThresholdingOptions,
    ScoreTransformationType,
    SubGraphMetadata,
    TensorMetadata,
)
from oplet_tools.metadata.writing import with_metadata

HEIGHT, WIDTH, CLASSES = 24, 32, 6
#: Of a feature map of a quarter of the picture's size, one box for each place.
PLACES = HEIGHT // 4 * (WIDTH // 4)

FILES = {
    "labels.txt": "cat\ndog\nbird\nfish\nfrog\nnewt\n",
    "de.txt": "Katze\nHund\nVogel\nFisch\nFrosch\nMolch\n",
    "calibration.txt": "0.9,2.5,0.2\n0.8,1.5,-0.1,0.05\n\n1,3,0.5\n0.95,1,0,0.9\n0.7,2,0.3",  # no end of line: MediaPipe takes a seventh line for one of a class
}


class Layers:
    """Writes layers of a net, in float32 or in uint8."""

    def __init__(self, graph: SubgraphBuilder, quantized: bool, seed: int) -> None:
        """Draw weights with a seed."""
        self.graph, self.quantized, self.random, self.count = graph, quantized, np.random.default_rng(seed), 0

    def tensor(self, name: str, shape: list[int], scale: float, zero_point: int = 0) -> int:
        """Return a new tensor of values."""
        if self.quantized:
            return self.graph.add_tensor(name, "uint8", shape, scale=scale, zero_point=zero_point)
        return self.graph.add_tensor(name, "float32", shape)

    def convolution(self, at: int, scale_in: float, shape: list[int], channels: int, **how: Any) -> int:
        """Return the output of a convolution by `kernel` x `kernel` weights; of each channel alone if it is `depthwise`."""
        kernel, stride, spread = how.get("kernel", 1), how.get("stride", 1), how.get("spread", 1.0)
        scale, zero_point = how.get("scale", 6 / 255), how.get("zero_point", 0)
        active = how.get("active", True)
        depthwise = how.get("depthwise", False)
        self.count += 1
        form = [1, kernel, kernel, channels] if depthwise else [channels, kernel, kernel, shape[3]]
        fans = kernel * kernel * (1 if depthwise else shape[3])
        weights = self.random.standard_normal(form) * spread / np.sqrt(fans)
        if not active:  # features are positive, so that otherwise one class would win everywhere
            weights -= weights.mean(axis=(1, 2, 3), keepdims=True)
        bias = self.random.standard_normal(channels) * 0.1
        step = float(np.abs(weights).max()) / 127
        if self.quantized:
            whole = (np.rint(weights / step) + 128).clip(0, 255).astype(np.uint8)
            w = self.graph.add_tensor(f"w{self.count}", "uint8", form, data=whole, scale=step, zero_point=128)
            numbers = np.rint(bias / (scale_in * step)).astype(np.int32)
            b = self.graph.add_tensor(f"b{self.count}", "int32", [channels], data=numbers, scale=scale_in * step, zero_point=0)
        else:
            w = self.graph.add_tensor(f"w{self.count}", "float32", form, data=weights.astype(np.float32))
            b = self.graph.add_tensor(f"b{self.count}", "float32", [channels], data=bias.astype(np.float32))
        made = self.tensor(f"y{self.count}", [1, shape[1] // stride, shape[2] // stride, channels], scale, zero_point)
        activation = ActivationFunctionType.RELU6 if active else ActivationFunctionType.NONE
        common = {"padding": Padding.SAME, "stride_w": stride, "stride_h": stride, "fused_activation_function": activation}
        if depthwise:
            self.graph.add_operator("DEPTHWISE_CONV_2D", [at, w, b], [made], DepthwiseConv2DOptions(depth_multiplier=1, **common))
        else:
            self.graph.add_operator("CONV_2D", [at, w, b], [made], Conv2DOptions(**common))
        return made

    def features(self) -> tuple[int, int, list[int]]:
        """Return the picture, the features that the first layers make of it, and their shape."""
        picture = self.tensor("picture", [1, HEIGHT, WIDTH, 3], 1 / 128, 128)
        at = self.convolution(picture, 1 / 128, [1, HEIGHT, WIDTH, 3], 8, kernel=3, stride=2, spread=2)
        shape = [1, HEIGHT // 2, WIDTH // 2, 8]
        at = self.convolution(at, 6 / 255, shape, 8, kernel=3, stride=2, depthwise=True, spread=2)
        shape = [1, HEIGHT // 4, WIDTH // 4, 8]
        return picture, self.convolution(at, 6 / 255, shape, 16, spread=2), [*shape[:3], 16]


def classifier(quantized: bool, threshold: float | None, calibration: ScoreTransformationType | None, seed: int = 8) -> bytes:
    """A classifier of six classes, whose metadata say what they may say of scores.

    With this seed LiteRT's kernels of uint8, of which MediaPipe takes the fast ones, agree among themselves; with others they are a step apart.
    """
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    layers = Layers(graph, quantized, seed)
    picture, at, _ = layers.features()
    axes = graph.add_tensor("axes", "int32", [2], data=np.array([1, 2], np.int32))
    pooled = layers.tensor("pooled", [1, 1, 1, 16], 6 / 255)
    graph.add_operator("MEAN", [at, axes], [pooled], ReducerOptions(keep_dims=True))
    made = layers.convolution(pooled, 6 / 255, [1, 1, 1, 16], CLASSES, active=False, scale=1 / 16, zero_point=128, spread=3)
    flat, scores = layers.tensor("flat", [1, CLASSES], 1 / 16, 128), layers.tensor("scores", [1, CLASSES], 1 / 256)
    form = graph.add_tensor("form", "int32", [2], data=np.array([1, CLASSES], np.int32))
    graph.add_operator("RESHAPE", [made, form], [flat])
    graph.add_operator("SOFTMAX", [flat], [scores], SoftmaxOptions(beta=1))
    graph.set_inputs(picture)
    graph.set_outputs(scores)
    said = TensorMetadata(name="probability", associated_files=labels(AssociatedFileType.TENSOR_AXIS_LABELS))
    rule(said, threshold, calibration)
    return described(builder, [said])


def detector(
    order: list[int] | None, threshold: float | None, calibration: ScoreTransformationType | None, swapped: bool = False
) -> bytes:
    """A detector that selects its boxes itself.

    `order` has the places of left, top, right and bottom; `swapped` gives outputs in another order.
    """
    builder = ModelBuilder(minimum_runtime=False)
    graph = builder.add_subgraph("main")
    layers = Layers(graph, False, 5)
    picture, at, shape = layers.features()
    codes, chances = raw_outputs(graph, layers, at, shape, CLASSES + 1)
    centers = anchors()
    boxes = graph.add_tensor("anchors", "float32", [PLACES, 4], data=centers)
    options = {
        "max_detections": 8,
        "max_classes_per_detection": 1,
        "nms_score_threshold": 0.0,
        "nms_iou_threshold": 0.5,
        "num_classes": CLASSES,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
    }
    written = [
        graph.add_tensor(name, "float32", form) for name, form in zip("abcd", ([1, 8, 4], [1, 8], [1, 8], [1]), strict=True)
    ]
    graph.add_operator("TFLite_Detection_PostProcess", [codes, chances, boxes], written, custom_options=flex.Dumps(options))
    said = [
        TensorMetadata(name="location", content=box_content(order)),
        TensorMetadata(name="category", associated_files=labels(AssociatedFileType.TENSOR_VALUE_LABELS)),
        TensorMetadata(name="score"),
        TensorMetadata(name="number of detections"),
    ]
    rule(said[2], threshold, calibration)
    places = [3, 2, 0, 1] if swapped else [0, 1, 2, 3]
    graph.set_inputs(picture)
    graph.set_outputs(*(written[place] for place in places))
    return described(builder, [said[place] for place in places])


def raw_detector(threshold: float | None, sigmoid: bool, exponential: bool, swapped: bool = False) -> bytes:
    """A detector whose boxes MediaPipe decodes and selects, by anchors in its custom metadata; `swapped` gives scores first."""
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    layers = Layers(graph, False, 5)
    picture, at, shape = layers.features()
    outputs = raw_outputs(graph, layers, at, shape, CLASSES, logits=sigmoid)
    fixed = [FixedAnchor(y_center=y, x_center=x, height=h, width=w) for y, x, h, w in anchors().tolist()]
    decoding = TensorsDecodingOptions(
        num_classes=CLASSES,
        num_boxes=PLACES,
        num_coords=4,
        keypoint_coord_offset=0,
        num_keypoints=0,
        num_values_per_keypoint=2,
        x_scale=2.0,
        y_scale=3.0,
        w_scale=4.0 if exponential else 1.0,
        h_scale=5.0 if exponential else 1.0,
        apply_exponential_on_box_size=exponential,
        sigmoid_score=sigmoid,
    )
    listed = SsdAnchorsOptions(fixed_anchors_schema=FixedAnchorsSchema(anchors=fixed))
    content = encode(ObjectDetectorOptions(ssd_anchors_options=listed, tensors_decoding_options=decoding), b"V001")
    custom = CustomMetadata(name="DETECTOR_METADATA", data=np.frombuffer(content, np.uint8))
    score = TensorMetadata(name="score", associated_files=labels(AssociatedFileType.TENSOR_AXIS_LABELS))
    rule(score, threshold, None)
    said = [TensorMetadata(name="location", content=box_content([0, 1, 2, 3])), score]
    order = [1, 0] if swapped else [0, 1]
    graph.set_inputs(picture)
    graph.set_outputs(*(outputs[place] for place in order))
    return described(builder, [said[place] for place in order], [custom])


def raw_outputs(
    graph: SubgraphBuilder, layers: Layers, at: int, shape: list[int], classes: int, *, logits: bool = False
) -> tuple[int, int]:
    """Return codes of boxes, and scores of classes for each, or the logits of scores."""
    found = []
    for name, width, spread in (("codes", 4, 1.5), ("logits", classes, 2.0)):
        made = layers.convolution(at, 6 / 255, shape, width, active=False, spread=spread)
        form = graph.add_tensor(f"form {name}", "int32", [3], data=np.array([1, PLACES, width], np.int32))
        found.append(graph.add_tensor(name, "float32", [1, PLACES, width]))
        graph.add_operator("RESHAPE", [made, form], [found[-1]])
    if logits:
        return found[0], found[1]
    chances = graph.add_tensor("chances", "float32", [1, PLACES, classes])
    graph.add_operator("LOGISTIC", [found[1]], [chances])
    return found[0], chances


def anchors() -> np.ndarray:
    """Return a box at each place of the features: centre y and x, height, width."""
    rows, columns = HEIGHT // 4, WIDTH // 4
    y, x = np.mgrid[0:rows, 0:columns]
    sides = 0.1 + 0.3 * np.random.default_rng(7).random((PLACES, 2))
    return np.stack([(y.ravel() + 0.5) / rows, (x.ravel() + 0.5) / columns, *sides.T], 1).astype(np.float32)


def labels(kind: AssociatedFileType) -> list[AssociatedFile]:
    """Return the files of labels: without a language, and in German."""
    return [AssociatedFile(name="labels.txt", type=kind), AssociatedFile(name="de.txt", type=kind, locale="de")]


def box_content(order: list[int] | None) -> Content:
    """Return what is said of boxes."""
    return Content(content_properties=BoundingBoxProperties(index=order, type=BoundingBoxType.BOUNDARIES))


def rule(said: TensorMetadata, threshold: float | None, calibration: ScoreTransformationType | None) -> None:
    """Add what is said of scores."""
    units = []
    if calibration is not None:
        units.append(ProcessUnit(options=ScoreCalibrationOptions(score_transformation=calibration, default_score=0.01)))
        file = AssociatedFile(name="calibration.txt", type=AssociatedFileType.TENSOR_AXIS_SCORE_CALIBRATION)
        said.associated_files = [*(said.associated_files or ()), file]
    if threshold is not None:
        units.append(ProcessUnit(options=ScoreThresholdingOptions(global_score_threshold=threshold)))
    said.process_units = units


def described(builder: ModelBuilder, outputs: list[TensorMetadata], custom: list[CustomMetadata] | None = None) -> bytes:
    """Return the model's file with metadata."""
    picture = TensorMetadata(
        name="image",
        content=Content(content_properties=ImageProperties(color_space=ColorSpaceType.RGB)),
        process_units=[ProcessUnit(options=NormalizationOptions(mean=[127.5], std=[127.5]))],
    )
    graph = SubGraphMetadata(input_tensor_metadata=[picture], output_tensor_metadata=outputs, custom_metadata=custom)
    tables = ModelMetadata(name="of a task", subgraph_metadata=[graph])
    return with_metadata(Model.from_bytes(builder.to_bytes()), tables=tables, files=FILES)
