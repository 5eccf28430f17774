"""Metadata of TFLite's tools and of ultralytics as rows of tables: what each says, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oplet_tools.metadata.reading import from_dict
from oplet_tools.metadata.tables import (
    AssociatedFile,
    AudioProperties,
    BertTokenizerOptions,
    BoundingBoxProperties,
    BoundingBoxType,
    Content,
    CoordinateType,
    ImageProperties,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    RegexTokenizerOptions,
    ScoreCalibrationOptions,
    ScoreThresholdingOptions,
    SentencePieceTokenizerOptions,
    SubGraphMetadata,
    TensorMetadata,
)

__all__ = ["said_rows"]

Row = tuple[str, str]
#: The most names of classes that are shown.
_MOST_NAMES = 6
_CORNERS = {
    BoundingBoxType.BOUNDARIES: ("left", "top", "right", "bottom"),
    BoundingBoxType.UPPER_LEFT: ("left", "top", "width", "height"),
    BoundingBoxType.CENTER: ("centre x", "centre y", "width", "height"),
}


def said_rows(description: Mapping[str, Any]) -> Iterator[tuple[str, list[Row]]]:
    """Yield a title and (name, value) rows, to print as a table, for each part of the metadata in a result of `inspect_model`."""
    if description["tflite_metadata"] is not None:
        said = from_dict(ModelMetadata, description["tflite_metadata"])
        names = ("name", "description", "version", "author", "license", "min_parser_version")
        rows = [(name.replace("_", " "), getattr(said, name) or "") for name in names]
        yield from _table("TFLite metadata", [*rows, *_files(said.associated_files)])
        for index, graph in enumerate(said.subgraph_metadata or ()):
            yield from _graph(f"subgraph {index}", graph)
    if description["ultralytics"] is not None:
        yield from _table("ultralytics metadata", [(key, _short(value)) for key, value in description["ultralytics"].items()])


def _table(title: str, rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    kept = [row for row in rows if row[1]]
    if kept:
        yield title, kept


def _graph(title: str, said: SubGraphMetadata) -> Iterator[tuple[str, list[Row]]]:
    rows = [("name", said.name or ""), ("description", said.description or "")]
    for what, groups in (("input group", said.input_tensor_groups), ("output group", said.output_tensor_groups)):
        rows += [(what, f"{group.name or ''}: {', '.join(group.tensor_names or ())}") for group in groups or ()]
    rows += [
        ("custom", f"{each.name or ''} ({0 if each.data is None else len(each.data)} bytes)")
        for each in said.custom_metadata or ()
    ]
    rows += [("of all inputs", _unit(unit)) for unit in said.input_process_units or ()]
    rows += [("of all outputs", _unit(unit)) for unit in said.output_process_units or ()]
    yield from _table(f"{title}: TFLite metadata", [*rows, *_files(said.associated_files)])
    for what, tensors in (("input", said.input_tensor_metadata), ("output", said.output_tensor_metadata)):
        for place, tensor in enumerate(tensors or ()):
            yield from _table(f"{title}: metadata of {what} {place}", _tensor(tensor))


def _tensor(said: TensorMetadata) -> list[Row]:
    rows = [("name", said.name or ""), ("description", said.description or "")]
    rows.append(("dimensions", ", ".join(said.dimension_names or ())))
    if said.content is not None:
        rows.append(("content", _content(said.content)))
    rows += [("step", _unit(unit)) for unit in said.process_units or ()]
    if said.stats is not None:
        rows.append(
            ("range", " to ".join(_numbers(ends) for ends in (said.stats.min, said.stats.max) if ends is not None and len(ends)))
        )
    return [*rows, *_files(said.associated_files)]


def _files(files: list[AssociatedFile] | None) -> list[Row]:
    rows = []
    for file in files or ():
        kind = file.type.name if hasattr(file.type, "name") else str(file.type)
        more = ", ".join(
            filter(
                None, (file.locale and f"language {file.locale}", file.version and f"version {file.version}", file.description)
            )
        )
        rows.append(
            (
                kind.lower().replace("_", " ") if kind != "UNKNOWN" else "file",
                f"{file.name or ''}" + (f" ({more})" if more else ""),
            )
        )
    return rows


def _content(said: Content) -> str:
    content = said.content_properties
    told = "" if content is None else type(content).__name__.removesuffix("Properties").lower()
    if isinstance(content, ImageProperties):
        colour = getattr(content.color_space, "name", str(content.color_space))
        told = f"picture, {colour}" if content.color_space else "picture"
        if content.default_size is not None:
            told += f", {content.default_size.width} x {content.default_size.height} where the shape is free"
    elif isinstance(content, AudioProperties):
        told = f"sound, {content.sample_rate} Hz, {content.channels} channels"
    elif isinstance(content, BoundingBoxProperties):
        told = f"boxes: {_box(content)}"
    if said.range is not None:
        told += f", dimensions {said.range.min} to {said.range.max}"
    return told


def _box(said: BoundingBoxProperties) -> str:
    unit = "pixels" if said.coordinate_type == CoordinateType.PIXEL else "parts of the picture's size"
    names = _CORNERS.get(said.type)
    if names is None:
        return f"of an unknown kind, in {unit}"
    order = list(range(4)) if said.index is None or not len(said.index) else [int(place) for place in said.index]
    if sorted(order) != [0, 1, 2, 3]:
        return f"{', '.join(names)} in the order {order}, in {unit}"
    return f"{', '.join(names[order.index(place)] for place in range(4))}, in {unit}"


def _unit(said: ProcessUnit) -> str:
    options = said.options
    if isinstance(options, NormalizationOptions):
        return f"normalization: mean {_numbers(options.mean)}, std {_numbers(options.std)}"
    if isinstance(options, ScoreThresholdingOptions):
        return f"scores below {options.global_score_threshold:.6g} left out"
    if isinstance(options, ScoreCalibrationOptions):
        how = getattr(options.score_transformation, "name", str(options.score_transformation))
        return f"score calibration: {how}, {options.default_score:.6g} where there are no parameters"
    if isinstance(options, BertTokenizerOptions | SentencePieceTokenizerOptions | RegexTokenizerOptions):
        files = [*(getattr(options, "sentencePiece_model", None) or ()), *(options.vocab_file or ())]
        split = f", split at {options.delim_regex_pattern!r}" if isinstance(options, RegexTokenizerOptions) else ""
        kind = type(options).__name__.removesuffix("TokenizerOptions")
        return f"tokenizer: {kind}{split}, {', '.join(file.name or '' for file in files)}"
    return "of a kind that this version does not know"


def _numbers(values: Any) -> str:
    told = [f"{float(value):.6g}" for value in ([] if values is None else values)]
    return told[0] if len(told) == 1 else f"[{', '.join(told[:_MOST_NAMES])}{', ...' if len(told) > _MOST_NAMES else ''}]"


def _short(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        items = [f"{key}: {item}" for key, item in value.items()] if isinstance(value, dict) else [str(item) for item in value]
        return ", ".join(items[:_MOST_NAMES]) + (f", ... ({len(items)})" if len(items) > _MOST_NAMES else "")
    return str(value)
