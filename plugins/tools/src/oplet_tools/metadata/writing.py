"""Writes metadata and attached files into a model, in place of what it has or in addition.

write_metadata("model.tflite", "out.tflite", tables=ModelMetadata(name="cats", ...), files={"labels.txt": "cat\\ndog\\n"})
"""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from oplet import Model, write_atomically
from oplet.errors import ModelError
from oplet.schema.encode import encode
from oplet.texts import shown
from oplet_tools.metadata.attached_files import MOST_BYTES, attached_file, attached_files
from oplet_tools.metadata.reading import associated_files, from_dict
from oplet_tools.metadata.tables import (
    ENTRY,
    IDENTIFIER,
    AssociatedFileType,
    AudioProperties,
    BertTokenizerOptions,
    ModelMetadata,
    RegexTokenizerOptions,
    SentencePieceTokenizerOptions,
    model_metadata,
)
from oplet_tools.metadata.ultralytics import FILE

__all__ = ["with_metadata", "write_metadata"]

#: The date of the files in an archive, so that equal metadata give equal bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def write_metadata(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    tables: ModelMetadata | Mapping[str, Any] | None = None,
    files: Mapping[str, bytes | str] | None = None,
    removed: Iterable[str] = (),
    ultralytics: Mapping[str, Any] | None = None,
) -> None:
    """Write a copy of a model's file with other metadata; the target may be the source, which is replaced atomically.

    Args:
        source: the .tflite file.
        target: the file to write.
        tables: the new TFLITE_METADATA, as a table or as the dictionary in `Metadata.as_dict`; None to keep the old ones.
        files: contents of files to attach, by name, replacing files of that name; text is written in UTF-8.
        removed: names of attached files to leave out.
        ultralytics: the new content of the attached metadata.json, as ultralytics writes it; None to keep the old one.

    Raises:
        ModelError: the model cannot be read or written, the metadata name a file that is not attached, or do not fit the model.
        OSError: the file cannot be written.
    """
    model = Model.open(source)
    if model.root.external_buffers and os.path.realpath(os.path.dirname(source)) != os.path.realpath(os.path.dirname(target)):
        raise ModelError(f"{model.name} has constants in other files beside it; write '{target}' into the same folder.")
    content = with_metadata(model, tables=tables, files=files, removed=removed, ultralytics=ultralytics)
    write_atomically(target, content)


def with_metadata(
    model: Model,
    *,
    tables: ModelMetadata | Mapping[str, Any] | None = None,
    files: Mapping[str, bytes | str] | None = None,
    removed: Iterable[str] = (),
    ultralytics: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the bytes of a model's file with other metadata; the arguments are those of `write_metadata`.

    Raises:
        ModelError: the metadata name a file that is not attached, or do not fit the model.
    """
    from oplet_tools.rewriting.rewrite import with_entries  # imported late: few programs write

    attached = _attached(model, {} if files is None else files, removed, ultralytics)
    said = tables if tables is None or isinstance(tables, ModelMetadata) else from_dict(ModelMetadata, tables)
    known = said if said is not None else model_metadata(model)
    if known is not None:
        _check(model, known, attached)
    changed = model
    if said is not None:
        said.min_parser_version = _least_version(said)
        changed = with_entries(model, {ENTRY: encode(said, IDENTIFIER)})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*that nothing refers to", UserWarning)
        content = changed.to_bytes(unreferenced="keep" if model.unreferenced_bytes() else "drop")  # the old archive goes
    return _archived(content, attached)


def _attached(
    model: Model, files: Mapping[str, bytes | str], removed: Iterable[str], ultralytics: Mapping[str, Any] | None
) -> dict[str, bytes]:
    """Return the content of all files that are to be attached, by name; those of the model come first."""
    there = [each.name for each in attached_files(model)]
    out = set(removed)
    for name in sorted(out - set(there)):
        known = ", ".join(f"'{shown(each)}'" for each in there) or "none"
        raise ModelError(f"{model.name} has no attached file '{shown(name)}' to remove; it has {known}.")
    kept = {name: attached_file(model, name) or b"" for name in there if name not in out}
    kept |= {name: content.encode() if isinstance(content, str) else bytes(content) for name, content in files.items()}
    if ultralytics is not None:
        kept[FILE] = json.dumps(ultralytics, indent=2).encode()
    for name, content in kept.items():
        if not name or len(content) > MOST_BYTES:
            raise ModelError(
                f"The file '{shown(name)}' cannot be attached to {model.name}: a file has a name, and {MOST_BYTES} bytes at most."
            )
    return kept


def _check(model: Model, said: ModelMetadata, attached: Mapping[str, bytes]) -> None:
    """Check that the metadata fit the model: its subgraphs, their inputs and outputs, and the files that they name."""
    graphs, subgraphs = said.subgraph_metadata or (), model.root.subgraphs or ()
    if len(graphs) > len(subgraphs):
        raise ModelError(
            f"The metadata describe {len(graphs)} subgraphs and {model.name} has {len(subgraphs)}; describe those alone."
        )
    for index, (graph, subgraph) in enumerate(zip(graphs, subgraphs)):
        for what, told, there in (
            ("inputs", graph.input_tensor_metadata, subgraph.inputs),
            ("outputs", graph.output_tensor_metadata, subgraph.outputs),
        ):
            count = 0 if there is None else len(there)
            if told is not None and len(told) != count:
                raise ModelError(
                    f"The metadata describe {len(told)} {what} of subgraph {index} and {model.name} has {count}; describe each, in the model's "
                    "order, with an empty TensorMetadata where nothing is to be said."
                )
    for file in associated_files(said):
        if file.name not in attached:
            raise ModelError(
                f"The metadata name the file '{shown(file.name)}', which is not attached to {model.name}; attach it, or leave it out."
            )


def _least_version(said: ModelMetadata) -> str:
    """Return the oldest version of the schema that has all that is set, as TFLite's own writer notes it."""
    versions = [(1, 0, 0)]
    for file in associated_files(said):
        versions.append((1, 4, 1) if file.version else (1, 0, 0))
        versions.append(
            {AssociatedFileType.VOCABULARY: (1, 0, 1), AssociatedFileType.SCANN_INDEX_FILE: (1, 4, 0)}.get(file.type, (1, 0, 0))
        )
    for graph in said.subgraph_metadata or ():
        tensors = [*(graph.input_tensor_metadata or ()), *(graph.output_tensor_metadata or ())]
        of_graph = [*(graph.input_process_units or ()), *(graph.output_process_units or ())]
        versions += [(1, 1, 0)] * bool(of_graph)
        versions += [(1, 2, 0)] * bool(graph.input_tensor_groups or graph.output_tensor_groups)
        versions += [(1, 5, 0)] * bool(graph.custom_metadata)
        for unit in [*of_graph, *(unit for tensor in tensors for unit in tensor.process_units or ())]:
            if isinstance(unit.options, BertTokenizerOptions | SentencePieceTokenizerOptions):
                versions.append((1, 1, 0))
            elif isinstance(unit.options, RegexTokenizerOptions):
                versions.append((1, 2, 1))
        for tensor in tensors:
            if tensor.content is not None and isinstance(tensor.content.content_properties, AudioProperties):
                versions.append((1, 3, 0))
    return ".".join(map(str, max(versions)))


def _archived(content: bytes, attached: Mapping[str, bytes]) -> bytes:
    """Append an archive to a model's bytes; files are stored as they are, which the readers of MediaPipe ask for."""
    if not attached:
        return content
    import zipfile

    into = io.BytesIO(content)
    with zipfile.ZipFile(into, "a", zipfile.ZIP_STORED) as archive:
        for name, file in attached.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), file)
    return into.getvalue()
