"""An open bundle: its sections by what they are for."""

from __future__ import annotations

import os
import zlib

from oplet import Model
from oplet.errors import ModelError
from oplet.toolkit import map_file
from oplet_lm.bundles.metadata import ExecutorMetadata, Metadata, read_executor_metadata, read_metadata
from oplet_lm.bundles.sections import Section, read_sections

__all__ = ["DECODER", "EMBEDDER", "PER_LAYER_EMBEDDER", "Bundle"]

DECODER, EMBEDDER, PER_LAYER_EMBEDDER = "tf_lite_prefill_decode", "tf_lite_embedder", "tf_lite_per_layer_embedder"

#: The name under which models refer to the weights that lie in a section of their own.
_WEIGHTS = "tflite_weights"
#: The largest metadata and the largest tokenizer, unpacked, in bytes; those of today's models have some kilobytes and 35 MB.
_LARGEST_METADATA, _LARGEST_TOKENIZER = 4 << 20, 128 << 20
_ALIGNMENT = 16


class Bundle:
    """A memory-mapped `.litertlm` or `.task` file: a language model's .tflite models, tokenizer and metadata in one file.

    Args:
        path: the file.

    Attributes:
        path: the file's path.
        kind: the file's format and version, in words.
        sections: its sections.

    Raises:
        ModelError: the file cannot be opened, is no bundle, or is damaged; of the methods: the part that they return is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file = map_file(path)
        self.kind, self.sections = read_sections(self._file.view, self.path)

    def content(self, section: Section) -> memoryview:
        """Return the bytes of a section; the file must not have been truncated."""
        self._file.check()
        return self._file.view[section.begin : section.end]

    def find(self, kind: str, model_type: str = "") -> Section | None:
        """Return the section of a kind ("TFLiteModel") and, for models and weights, of this `model_type`; None if there is none."""
        return next((each for each in self.sections if each.kind == kind and model_type in ("", each.model_type)), None)

    @property
    def models(self) -> list[str]:
        """The `model_type` of each model in the bundle, such as "tf_lite_prefill_decode"."""
        return [section.model_type for section in self.sections if section.kind == "TFLiteModel"]

    def model(self, model_type: str) -> Model | None:
        """Open the model of this `model_type`, with constants as views of the file; None if there is none."""
        section, weights = self.find("TFLiteModel", model_type), self.find("TFLiteWeights", model_type)
        if section is None:
            return None
        data: bytes | memoryview = self.content(section)
        if section.begin % _ALIGNMENT:  # in zip archives; such a model is copied
            data = bytes(data)
        try:
            model = Model.from_bytes(data, external={} if weights is None else {_WEIGHTS: self.content(weights)})
        except ModelError as error:
            raise ModelError(f"'{self.path}', {model_type}: {error}") from error
        model.name = f"{self.path}, {model_type}"
        return model

    def metadata(self) -> Metadata:
        """Read the metadata of the language model: special tokens, sampling, templates."""
        return read_metadata(self._small("LlmMetadataProto", _LARGEST_METADATA))

    def executor_metadata(self) -> ExecutorMetadata:
        """Read the metadata on running the model: its state buffers, and the window of local attention."""
        return read_executor_metadata(self._small("ExecutorMetadataProto", _LARGEST_METADATA))

    def tokenizer(self) -> tuple[str, bytes]:
        """Return the tokenizer's kind, "huggingface" or "sentencepiece", and its file, unpacked."""
        if (packed := self.find("HF_Tokenizer_Zlib")) is not None:
            return "huggingface", self._unpacked(self.content(packed))
        if found := self._small("SP_Tokenizer", _LARGEST_TOKENIZER):
            return "sentencepiece", found
        raise ModelError(f"'{self.path}' has no tokenizer.")

    def _unpacked(self, data: memoryview) -> bytes:
        size = int.from_bytes(data[:8], "little")
        if size > _LARGEST_TOKENIZER:
            raise ModelError(f"'{self.path}' has a tokenizer of {size} bytes; {_LARGEST_TOKENIZER} are read at most.")
        unpacker = zlib.decompressobj()
        try:
            found = unpacker.decompress(data[8:], size + 1)
        except zlib.error as error:
            raise ModelError(f"'{self.path}' is damaged: its tokenizer cannot be unpacked: {error}.") from error
        if len(found) != size or not unpacker.eof:
            raise ModelError(f"'{self.path}' is damaged: its tokenizer does not unpack to the {size} bytes that it says.")
        return found

    def _small(self, kind: str, most: int) -> bytes:
        """Return the content of the section of a kind, whose bytes are limited; b"" if there is none."""
        section = self.find(kind)
        if section is None:
            return b""
        if section.end - section.begin > most:
            raise ModelError(f"'{self.path}' has {section.end - section.begin} bytes of {kind}; {most} are read at most.")
        return bytes(self.content(section))
