"""An open bundle: its sections by what they are for."""

from __future__ import annotations

import os
import zlib

from oplet import Model
from oplet.errors import ModelError
from oplet.toolkit import map_file
from oplet_lm.bundles import litertlm, task
from oplet_lm.bundles.litertlm import Section
from oplet_lm.bundles.metadata import ExecutorMetadata, Metadata, read_executor_metadata, read_metadata

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
        ModelError: the file cannot be opened, is no bundle, or is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file = map_file(path)
        self._view = self._file.view
        if self._view[: len(litertlm.MAGIC)] == litertlm.MAGIC:
            version, self.sections = litertlm.read_sections(self._view, self.path)
            self.kind = f"LiteRT-LM file (.litertlm) of version {version}"
        elif self._view[: len(task.MAGIC)] == task.MAGIC:
            self.sections = task.read_entries(self._view, self.path)
            self.kind = "MediaPipe bundle (.task)"
        else:
            raise ModelError(f"'{self.path}' is no bundle of a language model: it is neither a .litertlm nor a .task file.")
        seen = set()
        for section in self.sections:
            key = section.kind, section.model_type
            if key in seen and section.kind != "GenericBinaryData":
                raise ModelError(f"'{self.path}' has two sections {section.kind} {section.model_type}; one of each is read.")
            seen.add(key)

    def content(self, section: Section) -> memoryview:
        """Return the bytes of a section.

        Raises:
            ModelError: the file was truncated.
        """
        self._file.check()
        return self._view[section.begin : section.end]

    def find(self, kind: str, model_type: str = "") -> Section | None:
        """Return the section of a kind ("TFLiteModel") and, for models and weights, of this `model_type`; None if there is none."""
        return next((each for each in self.sections if each.kind == kind and model_type in ("", each.model_type)), None)

    @property
    def models(self) -> list[str]:
        """The `model_type` of each model in the bundle, such as "tf_lite_prefill_decode"."""
        return [section.model_type for section in self.sections if section.kind == "TFLiteModel"]

    def model(self, model_type: str) -> Model | None:
        """Open the model of this `model_type`, with constants as views of the file; None if there is none.

        Raises:
            ModelError: the model is damaged.
        """
        section = self.find("TFLiteModel", model_type)
        if section is None:
            return None
        weights = self.find("TFLiteWeights", model_type)
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
        """Read the metadata of the language model: special tokens, sampling, templates.

        Raises:
            ModelError: the metadata are damaged.
        """
        return read_metadata(self._small("LlmMetadataProto"))

    def executor_metadata(self) -> ExecutorMetadata:
        """Read the metadata on running the model: its state buffers, and the window of local attention.

        Raises:
            ModelError: the metadata are damaged.
        """
        return read_executor_metadata(self._small("ExecutorMetadataProto"))

    def tokenizer(self) -> tuple[str, bytes]:
        """Return the tokenizer's kind, "huggingface" or "sentencepiece", and its file, unpacked.

        Raises:
            ModelError: there is no tokenizer, or it is damaged or too large.
        """
        packed, plain = self.find("HF_Tokenizer_Zlib"), self.find("SP_Tokenizer")
        if packed is not None:
            return "huggingface", self._unpacked(packed)
        if plain is None:
            raise ModelError(f"'{self.path}' has no tokenizer.")
        self._ensure_size(plain, _LARGEST_TOKENIZER)
        return "sentencepiece", bytes(self.content(plain))

    def _unpacked(self, section: Section) -> bytes:
        data = self.content(section)
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

    def _small(self, kind: str) -> bytes:
        section = self.find(kind)
        if section is None:
            return b""
        self._ensure_size(section, _LARGEST_METADATA)
        return bytes(self.content(section))

    def _ensure_size(self, section: Section, most: int) -> None:
        if section.end - section.begin > most:
            raise ModelError(f"'{self.path}' has {section.end - section.begin} bytes of {section.kind}; {most} are read at most.")
