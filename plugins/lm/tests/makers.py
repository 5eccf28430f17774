"""Makes bundles: files of either format, metadata, tokenizers, and a little language model whose answers numpy computes, too."""

from __future__ import annotations

import importlib
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from tests.places import ROOT

from oplet import ModelBuilder
from oplet.schema import options

VOCABULARY, WIDTH, CONTEXT = 128, 8, 32
SHARED_MODELS = ROOT / "tests" / "language_models"
Piece = tuple[int, dict[str, str], bytes]
MODEL, WEIGHTS, SENTENCEPIECE, METADATA, HUGGINGFACE, EXECUTOR = 3, 7, 4, 5, 6, 9


def follows_avx512() -> bool:
    """Return whether there are compiled kernels for AVX-512, whose floats are XNNPACK's bit for bit."""
    return (
        find_spec("oplet_compiled_ops") is not None and importlib.import_module("oplet_compiled_ops.library.levels").has_masks()
    )


def litertlm(pieces: Sequence[Piece], version: tuple[int, int, int] = (1, 7, 0), block: int = 16384) -> bytes:
    """A `.litertlm` file of these sections: their types' numbers, items and contents."""
    places, at = [], block
    for _, _, content in pieces:
        places.append((at, at + len(content)))
        at += -(-len(content) // block) * block
    header = header_of([(kind, items, begin, end) for (kind, items, _), (begin, end) in zip(pieces, places)])
    data = bytearray(b"LITERTLM" + struct.pack("<IIIIQ", *version, 0, 32 + len(header)) + header)
    for (_, _, content), (begin, _) in zip(pieces, places):
        data.extend(bytes(begin - len(data)))
        data.extend(content)
    return bytes(data)


def header_of(sections: Sequence[tuple[int, dict[str, str], int, int]]) -> bytes:
    """The FlatBuffer in a `.litertlm` file's header."""
    builder = flatbuffers.Builder(1024)
    objects = []
    for kind, items, begin, end in sections:
        pairs = []
        for key, value in items.items():
            text, name = builder.CreateString(value), builder.CreateString(key)
            table = _table(builder, [("offset", 0, text)])
            pairs.append(_table(builder, [("offset", 0, name), ("uint8", 1, 9), ("offset", 2, table)]))
        listed = _vector(builder, pairs)
        objects.append(_table(builder, [("offset", 0, listed), ("uint64", 1, begin), ("uint64", 2, end), ("uint8", 3, kind)]))
    metadata = _table(builder, [("offset", 0, _vector(builder, objects))])
    system = _table(builder, [("offset", 0, _vector(builder, []))])
    builder.Finish(_table(builder, [("offset", 0, system), ("offset", 1, metadata)]))
    return bytes(builder.Output())


def _table(builder: Any, fields: Sequence[tuple[str, int, int]]) -> int:
    builder.StartObject(1 + max(slot for _, slot, _ in fields))
    for kind, slot, value in fields:
        add = {
            "offset": builder.PrependUOffsetTRelativeSlot,
            "uint8": builder.PrependUint8Slot,
            "uint64": builder.PrependUint64Slot,
        }
        add[kind](slot, value, 0)
    return builder.EndObject()


def _vector(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def field(number: int, value: Any) -> bytes:
    """A field of a Protocol Buffers message: an int, a float, a text or bytes."""
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def metadata(
    *stops: str | tuple[int, ...], start: int | None = None, template: str = "", most: int = 0, sampler: bytes = b""
) -> bytes:
    """An LlmMetadata message."""
    data = b"" if start is None else field(1, field(1, field(1, start)))
    for stop in stops:
        data += field(2, field(2, stop) if isinstance(stop, str) else field(1, field(1, b"".join(map(_varint, stop)))))
    data += field(4, sampler) if sampler else b""
    data += field(5, most) if most else b""
    return data + (field(7, template) if template else b"")


@cache
def characters() -> bytes:
    """A tokenizer of Hugging Face's, in JSON: each of the first 128 characters is a token of its number."""
    from tokenizers import Tokenizer, decoders, models

    tokenizer = Tokenizer(models.BPE(vocab={chr(number): number for number in range(VOCABULARY)}, merges=[]))
    tokenizer.decoder = decoders.Fuse()
    return tokenizer.to_str().encode()


@cache
def pieces() -> bytes:
    """A tokenizer of SentencePiece's, with some pieces and bytes for the rest."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "a dog and a cat", "the dog sat"] * 20),
        model_writer=model,
        vocab_size=300,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
    )
    return model.getvalue()


def packed(tokenizer: bytes) -> bytes:
    """A section HF_Tokenizer_Zlib."""
    return struct.pack("<Q", len(tokenizer)) + zlib.compress(tokenizer)


class Little:
    """A little language model: a token attends alike to itself and all before it, each an embedding and a place's vector.

    Args:
        prefills: the lengths of its prefills, -1 for any.
        embedder: whether it takes embeddings, which another model makes.
        external: whether its weights are not in the model's file.
        twice: whether each step reads the cache twice, so that it cannot be written in place.
        split: whether an auxiliary model makes masks and places' vectors, and updates the cache, as for NPUs.
    """

    def __init__(
        self,
        prefills: Sequence[int] = (4, 16),
        *,
        embedder: bool = False,
        external: bool = False,
        twice: bool = False,
        split: bool = False,
        context: int = CONTEXT,
        vocabulary: int = VOCABULARY,
    ) -> None:
        random = np.random.default_rng(7)
        shapes = ((vocabulary, WIDTH), (context, WIDTH), (vocabulary, WIDTH))
        self.embeddings, self.places, self.head = (random.normal(size=shape).astype(np.float32) for shape in shapes)
        self.context, self._external, self._embedder, self._twice, self._split = context, external, embedder, twice, split
        self._builder, self._auxiliary = ModelBuilder(), ModelBuilder()
        for length in prefills:
            self._graph(f"prefill_{length}" if length > 0 else "prefill", length)
        self._graph("decode", 1)
        self.model = self._builder.to_bytes()
        self.weights = next(iter(self._builder.external_files().values()), b"")

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        """The logits after these tokens."""
        return (self.embeddings[list(tokens)] + self.places[: len(tokens)]).mean(0) @ self.head.T

    def greedy(self, tokens: Sequence[int], count: int) -> list[int]:
        """The most likely tokens that follow."""
        found = list(tokens)
        for _ in range(count):
            found.append(int(self.logits(found).argmax()))
        return found[len(tokens) :]

    def pieces(self, about: bytes = b"", tokenizer: Piece | None = None) -> list[Piece]:
        """The sections of a bundle."""
        found = [(METADATA, {}, about)] if about else []
        found += [
            tokenizer or (HUGGINGFACE, {}, packed(characters())),
            (MODEL, {"model_type": "tf_lite_prefill_decode"}, self.model),
        ]
        if self.weights:
            found.append((WEIGHTS, {"model_type": "tf_lite_prefill_decode"}, self.weights))
        if self._embedder:
            found.append((MODEL, {"model_type": "tf_lite_embedder"}, self.lookup()))
        if self._split:
            found.append((MODEL, {"model_type": "tf_lite_aux"}, self._auxiliary.to_bytes()))
        return found

    def save(self, folder: Path, about: bytes = b"", tokenizer: Piece | None = None) -> Path:
        """Write a `.litertlm` bundle of it."""
        path = folder / "little.litertlm"
        path.write_bytes(litertlm(self.pieces(about, tokenizer)))
        return path

    def lookup(self) -> bytes:
        """The model that makes its embeddings, eight at a time or one."""
        builder = ModelBuilder()
        for count in (8, 1):
            graph = builder.add_subgraph(f"lookup_{count}")
            ids = graph.add_tensor("token_ids", "int32", [1, count])
            flat, found, out = (
                graph.add_tensor(name, type, shape)
                for name, type, shape in (
                    ("flat", "int32", [count]),
                    ("found", "float32", [count, WIDTH]),
                    ("out", "float32", [1, count, WIDTH]),
                )
            )
            graph.add_operator("RESHAPE", [ids, _shape(graph, [count])], [flat])
            graph.add_operator(
                "EMBEDDING_LOOKUP",
                [flat, graph.add_tensor("table", "float32", self.embeddings.shape, data=self.embeddings)],
                [found],
            )
            graph.add_operator("RESHAPE", [found, _shape(graph, [1, count, WIDTH])], [out])
            graph.set_inputs(ids)
            graph.set_outputs(out)
            builder.add_signature(f"embed_{count}", {"token_ids": ids}, {"embeddings": out}, graph)
        return builder.to_bytes()

    def _graph(self, key: str, count: int) -> None:
        graph, context = self._builder.add_subgraph(key), self.context
        free, size = count < 0, abs(count)
        tensor = graph.add_tensor

        def free_at(shape: list[int], place: int) -> dict[str, Any]:
            return {"shape_signature": [-1 if at == place else each for at, each in enumerate(shape)]} if free else {}

        if self._embedder:
            source = tensor("embeddings", "float32", [1, size, WIDTH], **free_at([1, size, WIDTH], 1))
        else:
            source = tensor("tokens", "int32", [1, size], **free_at([1, size], 1))
        seeing = context + size * self._split
        places = tensor("input_pos", "int32", [size], **free_at([size], 0))
        mask = tensor("mask", "float32", [1, 1, size, seeing], **free_at([1, 1, size, seeing], 2))
        old = tensor("kv_cache_k_0", "float32", [1, 1, context, WIDTH])
        new = tensor("new cache", "float32", [1, 1, seeing if self._split else context, WIDTH])
        embedded = source
        if not self._embedder:
            flat, embedded = tensor("flat", "int32", [size]), tensor("embedded", "float32", [size, WIDTH])
            graph.add_operator("RESHAPE", [source, _shape(graph, [-1])], [flat])
            graph.add_operator("EMBEDDING_LOOKUP", [flat, self._constant(graph, "table", self.embeddings)], [embedded])
        placed, added = (tensor(name, "float32", [size, WIDTH]) for name in ("placed", "added"))
        rows = tensor("rows", "float32", [size, WIDTH])
        graph.add_operator("RESHAPE", [embedded, _shape(graph, [-1, WIDTH])], [rows])
        if not self._split:
            graph.add_operator(
                "GATHER", [self._constant(graph, "places", self.places), places], [placed], options.GatherOptions(axis=0)
            )
        graph.add_operator("ADD", [rows, placed], [added], options.AddOptions())
        update = tensor("update", "float32", [1, 1, size, WIDTH])
        graph.add_operator("RESHAPE", [added, _shape(graph, [1, 1, -1, WIDTH])], [update])
        if self._split:
            graph.add_operator("CONCATENATION", [old, update], [new], options.ConcatenationOptions(axis=2))
            self._beside(key, size)
        else:
            _update(graph, places, old, update, new)
        shares, seen = tensor("shares", "float32", [1, 1, size, seeing]), tensor("seen", "float32", [1, 1, size, WIDTH])
        graph.add_operator("SOFTMAX", [mask], [shares], options.SoftmaxOptions(beta=1.0))
        graph.add_operator("BATCH_MATMUL", [shares, new], [seen], options.BatchMatMulOptions())
        if self._twice:
            again = tensor("again", "float32", [1, 1, context, WIDTH])
            graph.add_operator("ABS", [old], [again])
        outputs = {"kv_slice_k_0": update} if self._split else {"kv_cache_k_0": new}
        if key == "decode":
            wide, logits = tensor("wide", "float32", [1, len(self.head)]), tensor("logits", "float32", [1, 1, len(self.head)])
            plain = tensor("plain", "float32", [1, WIDTH])
            graph.add_operator("RESHAPE", [seen, _shape(graph, [1, WIDTH])], [plain])
            graph.add_operator(
                "FULLY_CONNECTED",
                [plain, self._constant(graph, "head", self.head), None],
                [wide],
                options.FullyConnectedOptions(),
            )
            graph.add_operator("RESHAPE", [wide, _shape(graph, [1, 1, len(self.head)])], [logits])
            outputs["logits"] = logits
        name = "embeddings" if self._embedder else "tokens"
        inputs = {name: source, "input_pos": places, "mask": mask, "kv_cache_k_0": old}
        if self._split:
            inputs = {name: source, "pos_emb_cos": placed, "mask": mask, "kv_cache_k_0": old}
        graph.set_inputs(*inputs.values())
        graph.set_outputs(*outputs.values())
        self._builder.add_signature(key, inputs, outputs, graph)

    def _beside(self, key: str, size: int) -> None:
        """Add what the auxiliary model computes for a signature of the decoder."""
        kind, _, length = key.partition("_")
        old_mask, new_mask = [1, 1, size, self.context], [1, 1, size, size]

        def add(what: str, inputs: dict[str, Any], outputs: dict[str, Any], nodes: Callable[..., None]) -> None:
            graph = self._auxiliary.add_subgraph()
            ends = [{name: graph.add_tensor(name, *form) for name, form in each.items()} for each in (inputs, outputs)]
            nodes(graph, *ends[0].values(), *ends[1].values())
            graph.set_inputs(*ends[0].values())
            graph.set_outputs(*ends[1].values())
            self._auxiliary.add_signature(f"{kind}_{what}" + (f"_{length}" if length else ""), *ends, graph)

        def place(graph: Any, places: int, found: int) -> None:
            table = graph.add_tensor("places", "float32", self.places.shape, data=self.places)
            graph.add_operator("GATHER", [table, places], [found], options.GatherOptions(axis=0))

        def hide(graph: Any, tokens: int, start: int, valid: int, mask: int) -> None:
            def constant(value: Any, dtype: Any = np.float32) -> int:
                array = np.asarray(value, dtype)
                return int(graph.add_tensor("constant", array.dtype.name, array.shape, data=array))

            before, hidden = graph.add_tensor("before", "bool", [self.context]), graph.add_tensor("hidden", "float32", old_mask)
            graph.add_operator("LESS", [constant(np.arange(self.context), np.int32), start], [before])
            graph.add_operator("SELECT_V2", [before, constant(np.zeros(old_mask)), constant(-1e9)], [hidden])
            ahead = constant(np.where(np.tri(size), 0, -1e9).reshape(new_mask))
            graph.add_operator("CONCATENATION", [hidden, ahead], [mask], options.ConcatenationOptions(axis=3))

        def update(graph: Any, places: int, valid: int, old: int, rows: int, new: int) -> None:
            _update(graph, places, old, rows, new)

        cache, places = ("float32", [1, 1, self.context, WIDTH]), ("int32", [size])
        valid = ("bool", [1, size])
        add("rope", {"input_pos": places}, {"pos_emb_cos": ("float32", [size, WIDTH])}, place)
        given = {"input_tokens": ("int32", [1, size]), "time_step": ("int32", []), "valid_mask": valid}
        add("mask", given, {"mask": ("float32", [1, 1, size, self.context + size])}, hide)
        rows = ("float32", [1, 1, size, WIDTH])
        given = {"input_pos": places, "valid_mask": valid, "kv_cache_k_0": cache, "kv_slice_k_0": rows}
        add("cache_update", given, {"kv_cache_k_0": cache}, update)

    def _constant(self, graph: Any, name: str, value: np.ndarray) -> int:
        if self._external:
            buffer = self._builder.add_external_buffer("tflite_weights", value)
            return graph.add_tensor(name, "float32", value.shape, external_buffer=buffer)
        return graph.add_tensor(name, "float32", value.shape, data=value)


def _update(graph: Any, places: int, old: int, update: int, new: int) -> None:
    """Add nodes that write rows into a cache, from the first of these places on."""
    first, starts = graph.add_tensor("first", "int32", [1]), graph.add_tensor("starts", "int32", [4])
    graph.add_operator("SLICE", [places, _shape(graph, [0]), _shape(graph, [1])], [first])
    graph.add_operator(
        "CONCATENATION", [_shape(graph, [0, 0]), first, _shape(graph, [0])], [starts], options.ConcatenationOptions(axis=0)
    )
    graph.add_operator("DYNAMIC_UPDATE_SLICE", [old, update, starts], [new])


def _shape(graph: Any, sizes: Sequence[int]) -> int:
    return graph.add_tensor("sizes", "int32", [len(sizes)], data=np.array(sizes, np.int32))


def task(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A `.task` bundle of these files."""
    with zipfile.ZipFile(file := io.BytesIO(), "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()
