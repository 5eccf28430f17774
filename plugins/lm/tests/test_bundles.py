"""Bundles: what is read of them, and that damaged and hostile ones are refused in a sentence."""

from __future__ import annotations

import os
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from plugins.lm.tests.makers import (
    HUGGINGFACE,
    METADATA,
    MODEL,
    SENTENCEPIECE,
    Little,
    Piece,
    characters,
    field,
    header_of,
    litertlm,
    metadata,
    packed,
    pieces,
    task,
)

from oplet import ModelBuilder
from oplet.errors import LimitError, ModelError
from oplet_lm import Bundle, LanguageModel, Sampling, tokenizer
from oplet_lm.metadata import StateBuffer, read_metadata
from oplet_lm.template import render

DECODER = {"model_type": "tf_lite_prefill_decode"}


def written(folder: Path, data: bytes) -> Path:
    path = folder / "bundle"
    path.write_bytes(data)
    return path


def test_a_bundle_lists_its_sections(tmp_path: Path) -> None:
    data = litertlm([(METADATA, {}, b""), (MODEL, DECODER | {"backend_constraint": "cpu"}, b"12345"), (77, {}, b"new")])
    bundle = Bundle(written(tmp_path, data))
    assert bundle.kind == "LiteRT-LM file (.litertlm) of version 1.7.0"
    assert [(each.kind, each.model_type, each.end - each.begin) for each in bundle.sections] == [
        ("LlmMetadataProto", "", 0),
        ("TFLiteModel", "tf_lite_prefill_decode", 5),
        ("of type 77", "", 3),
    ]
    assert bundle.models == ["tf_lite_prefill_decode"]
    assert bundle.sections[1].items["backend_constraint"] == "cpu"


def test_of_several_sections_of_a_kind_the_last_one_is_read_and_a_model_without_a_type_is_the_decoder(tmp_path: Path) -> None:
    data = litertlm(
        [
            (MODEL, DECODER, b""),
            (HUGGINGFACE, {}, b""),
            (SENTENCEPIECE, {}, b"a"),
            (SENTENCEPIECE, {}, b"b"),
            (MODEL, {}, b"last"),
        ]
    )
    bundle = Bundle(written(tmp_path, data))
    found = bundle.find("TFLiteModel", "tf_lite_prefill_decode")
    assert found is not None
    assert bytes(bundle.content(found)) == b"last"
    assert bundle.tokenizer() == ("sentencepiece", b"b")


def test_metadata_is_read() -> None:
    sampler = field(1, 2) + field(2, 40) + field(3, 0.5) + field(4, 0.25) + field(5, -1)
    about = metadata("</s>", (300, 2), start=7, template="{{ x }}", most=4096, sampler=sampler) + field(10, -1)
    found = read_metadata(about)
    assert found.start == (7,)
    assert read_metadata(field(1, field(1, field(1, 7) + field(1, 8))) + about).start == (7,)  # of several ids the first
    assert found.stops == ["</s>", (300, 2)]
    assert found.template == "{{ x }}"
    assert found.most_tokens == 4096
    assert found.sampling == Sampling(40, 0.5, 0.25, -1)
    assert found.cache_value == -1
    assert read_metadata(metadata(sampler=field(1, 3) + field(4, 5.0))).sampling == Sampling(1)
    assert read_metadata(metadata(sampler=field(1, 1) + field(2, 9) + field(4, 5.0))).sampling == Sampling(9, 1.0, 5.0)


def test_mediapipes_parameters_are_read() -> None:
    found = read_metadata(
        field(1, b"") + field(2, 256) + field(4, 5) + field(5, "</s>") + field(5, "x") + field(8, field(2, "a") + field(3, "b"))
    )
    assert (found.start, found.stops) == ((5,), ["</s>", "x"])
    assert render(found.template, [{"role": "user", "content": "hi"}], {}) == "ahib"


def test_executor_metadata_is_read() -> None:
    names = b"".join(field(number, name) for number, name in enumerate(("in", "out", "d in", "d out"), 1))
    found = read_metadata(b"", field(1, field(2, names + field(6, 5) + field(7, 2)) + field(3, field(3, 512))))
    assert found.states == (StateBuffer("in", "out", "d in", "d out", 5, 2),)
    assert found.window == 512


# Hostile files -------------------------------------------------------------------------------------------------

PLAIN = [(HUGGINGFACE, {}, packed(characters())), (MODEL, DECODER, b"")]


def header(*sections: tuple[int, dict[str, str], int, int], size: int = 60_000, end: int = 0) -> bytes:
    """A file with a header of these sections."""
    made = header_of(sections)
    start = b"LITERTLM" + struct.pack("<IIIIQ", 1, 7, 0, 0, end or 32 + len(made)) + made
    return start + bytes(size - len(start))


def twice() -> bytes:
    """A zip archive whose two files lie in the same place."""
    data = bytearray(task({"TF_LITE_A": b"x" * 99, "TF_LITE_B": b"y" * 99}))
    second = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, second + 42, 0)
    return bytes(data)


def crowded() -> bytes:
    """A zip archive whose table of contents has forty thousand files."""
    table = (b"PK\x01\x02" + bytes(24) + struct.pack("<HHH", 1, 0, 0) + bytes(12) + b"a") * 40_000
    return b"PK\x03\x04" + bytes(26) + table + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 40_000, 40_000, len(table), 30, 0)


def vast() -> bytes:
    """A small model whose two caches would have ten gigabytes each."""
    builder = ModelBuilder()
    graph = builder.add_subgraph("decode")
    inputs = {name: graph.add_tensor(name, "int32", [1]) for name in ("tokens", "input_pos")}
    old, new = ({name: graph.add_tensor(name, "float32", [1, 4096, 610_352]) for name in ("k", "v")} for _ in range(2))
    for name, index in old.items():
        graph.add_operator("ABS", [index], [new[name]])
    graph.set_inputs(*inputs.values(), *old.values())
    graph.set_outputs(*new.values())
    builder.add_signature("decode", {**inputs, **old}, new, graph)
    return litertlm([(HUGGINGFACE, {}, packed(characters())), (MODEL, DECODER, builder.to_bytes())])


def encrypted() -> bytes:
    """A zip archive whose file is said to be encrypted."""
    data = bytearray(task({"TF_LITE_A": b"x"}))
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing but the magic": (lambda: b"LITERTLM", "is cut off: a .litertlm file has a header of 32 bytes at least"),
    "another version": (lambda: litertlm(PLAIN, (2, 0, 0)), r"is of version 2.0.0 of .litertlm files; versions 1.x are read"),
    "a header that ends outside": (lambda: header(end=1 << 60), "its header ends at byte 1152921504606846976"),
    "a header that ends before it begins": (lambda: header(end=3), "its header ends at byte 3"),
    "a huge header": (lambda: header(size=3 << 20, end=2 << 20), "its header ends at byte 2097152"),
    "a header of zeros": (lambda: header()[:32] + bytes(60_000), "is not a valid Flatbuffer buffer: .* of the header of "),
    "a section outside": (lambda: header((3, DECODER, 16384, 1 << 62)), "lies outside the file's 60000 bytes"),
    "a section that ends before it begins": (lambda: header((3, DECODER, 32768, 16384)), "overlaps"),
    "a section in the header": (lambda: header((3, DECODER, 16, 16384)), "overlaps"),
    "sections that overlap": (lambda: header((5, {}, 16384, 40_000), (3, DECODER, 32768, 50_000)), "overlaps"),
    "a section anywhere": (lambda: header((3, DECODER, 16387, 16400)), "begins at byte 16387, no multiple of 16"),
    "more items than anybody has": (lambda: header((1, {str(n): "x" for n in range(300)}, 32768, 32768)), "lists 300 things in a row; 256 are read at most"),
    "more sections than anybody has": (lambda: header(*[(1, {}, 32768, 32768)] * 300), "lists 300 things in a row"),
    "a tokenizer that unpacks to gigabytes": (
        lambda: litertlm([(HUGGINGFACE, {}, struct.pack("<Q", 1 << 40) + zlib.compress(bytes(1000)))]),
        "to the 1099511627776 bytes that it says; 134217728 are read at most",
    ),
    "a tokenizer that unpacks to more than it says": (
        lambda: litertlm([(HUGGINGFACE, {}, struct.pack("<Q", 10) + zlib.compress(bytes(1 << 26)))]),
        "does not unpack to the 10 bytes that it says",
    ),
    "a tokenizer that is cut off": (lambda: litertlm([(HUGGINGFACE, {}, packed(characters())[:-30])]), "tokenizer does not unpack|cannot be unpacked"),
    "a tokenizer that is none": (lambda: litertlm([(HUGGINGFACE, {}, packed(b'{"model": {"type": "BPE"}}'))]), "has a damaged tokenizer"),
    "a tokenizer that is no text": (lambda: litertlm([(HUGGINGFACE, {}, packed(b"\xff\xfe"))]), "has a damaged tokenizer"),
    "pieces that are none": (lambda: litertlm([(SENTENCEPIECE, {}, b"\x0a\xff\xff")]), "has a damaged tokenizer"),
    "metadata that is cut off": (lambda: litertlm([(METADATA, {}, b"\x0a\x7f")]), "metadata is damaged"),
    "metadata of one endless number": (lambda: litertlm([(METADATA, {}, b"\x28" + b"\xff" * 40)]), "metadata is damaged"),
    "metadata of a million fields": (lambda: litertlm([(METADATA, {}, b"\x28\x01" * 1_000_000)]), "has more than 16384 fields"),
    "metadata of megabytes": (lambda: litertlm([(METADATA, {}, bytes(5 << 20))]), "5242880 bytes of LlmMetadataProto; 4194304 are read"),
    "more stop sequences than anybody has": (
        lambda: litertlm(Little().pieces(b"".join(field(2, field(1, field(1, bytes([n % 128, n // 128])))) for n in range(5000)))),
        "has 5000 stop sequences; 4096 are taken at most",
    ),
    "a model that is none": (lambda: litertlm([*PLAIN[:1], (MODEL, DECODER, b"12345678" * 9)]), "tf_lite_prefill_decode: .*identifier"),
    "a zip archive that is cut off": (lambda: task({"TF_LITE_PREFILL_DECODE": b"x"})[:-5], "is a damaged zip archive"),
    "a bomb": (lambda: task({"TF_LITE_PREFILL_DECODE": bytes(50 << 20)}, zipfile.ZIP_DEFLATED), "has 'TF_LITE_PREFILL_DECODE' compressed"),
    "more files than anybody has": (lambda: task({str(n): b"" for n in range(300)}), "has 300 files; 256 are read at most"),
    "two files in one place": (twice, "its section TFLiteModel tf_lite_[ab], .* overlaps what lies before"),
    "a table of contents of megabytes": (crowded, "its table of contents has more than 1048576 bytes"),
    "caches beyond all limits": (vast, "'k, v' would take 20000014336 bytes"),
    "an encrypted file": (encrypted, "has 'TF_LITE_A' compressed or encrypted"),
    "neither format": (lambda: b"hello, this is no bundle", "is neither a .litertlm nor a .task file"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_bundle_is_refused_in_a_sentence_and_takes_no_memory(case: str, tmp_path: Path) -> None:
    make, words = HOSTILE[case]
    path = written(tmp_path, make())
    tracemalloc.start()
    try:
        with pytest.raises((ModelError, LimitError), match=words) as caught:
            LanguageModel(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert peak < 32 << 20


@pytest.mark.parametrize(
    "part",
    [
        (HUGGINGFACE, {}, packed(characters()[:-1] + b', "more": [' + b"[]," * 2000 + b"1]}")),
        (SENTENCEPIECE, {}, b"\x0a\x00" * 2001),
        (SENTENCEPIECE, {}, field(1, bytes(128)) * 1001),
        (SENTENCEPIECE, {}, pieces()[: 2 + pieces()[1]] + field(2, b"\xfa\x01\x00" * 600) * 2),
    ],
    ids=["lists", "short pieces", "long pieces", "what is no piece"],
)
def test_a_tokenizer_of_too_many_parts_is_refused_before_a_library_reads_it(
    part: Piece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = Bundle(written(tmp_path, litertlm([part])))
    monkeypatch.setattr(tokenizer, "_MOST_ENTRIES", 1000)
    with pytest.raises(ModelError, match="has a damaged tokenizer: (it has|a message has) more than 1000 "):
        tokenizer.Tokenizer(bundle)


def test_a_bundle_that_is_cut_while_open_is_refused(tmp_path: Path) -> None:
    path = Little().save(tmp_path)
    model = LanguageModel(path)
    bundle = Bundle(path)
    os.truncate(path, 100)
    with pytest.raises(ModelError, match="changed while it was in use"):
        bundle.tokenizer()
    with pytest.raises(ModelError, match="changed while it was in use"):
        model.generate("hello", max_tokens=3)


def test_metadata_that_is_no_message_is_refused() -> None:
    for data in (b"\x08", b"\x12\x05ab", b"\x1d\x00", b"\x0b", b"\x00\x01", b"\x09\x00", field(9, field(1, b"\xff"))):
        with pytest.raises(ModelError, match="metadata is damaged"):
            read_metadata(data)
