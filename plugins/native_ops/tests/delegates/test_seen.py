"""What a delegate library sees of a model is what it sees of it in LiteRT: nodes, options, tensors, constants, partitions, metadata."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType
from ai_edge_litert.interpreter import load_delegate as load_in_litert
from plugins.native_ops.tests.delegates.conftest import convolutions, real_models
from tests.places import REAL

from oplet import Interpreter, load_delegate
from oplet.errors import OpletError


@pytest.fixture(scope="module")
def probe(build_once: Callable[..., str]) -> str:
    return build_once("delegates/probe.c", library="libprobe.so")


def seen_here(probe: str, content: bytes) -> str | None:
    try:
        interpreter = Interpreter(model_content=content, experimental_delegates=[load_delegate(probe)])
    except OpletError:
        return None  # its shapes follow from data, or it is not a model that can be prepared
    return text_of(probe) if len(interpreter.delegation_reports()) == 1 else None


def seen_there(probe: str, content: bytes) -> str | None:
    try:
        interpreter = LiteRT(
            model_content=content,
            experimental_delegates=[load_in_litert(probe)],
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError):
        return None
    return text_of(probe)


def text_of(probe: str) -> str:
    where = ctypes.c_char.in_dll(ctypes.CDLL(probe), "probe_text")
    return ctypes.string_at(ctypes.addressof(where)).decode("utf-8", "replace")


def test_of_a_small_model_it_sees_everything(probe: str) -> None:
    here = seen_here(probe, convolutions(2))
    assert here == seen_there(probe, convolutions(2))
    assert here is not None
    assert "node 4 code 40 version 1 '' in[8,9] out[10] keep 0" in here.replace("  ", " ")


@pytest.mark.skipif(not REAL.is_dir(), reason="the recorded models lie outside the project and are not here")
def test_of_real_models_it_sees_what_it_sees_in_litert(probe: str) -> None:
    compared = 0
    for name, content in real_models(2_000_000):
        here = seen_here(probe, content)
        # Nodes that libraries are not shown have no options, and no version that they know.
        if here is None or any(word in name for word in ("sparse", "resource_vars", "blockwise")):
            continue
        if b"odml." in content:  # composites are inlined here, as LiteRT's CompiledModel does: a library is shown their nodes
            continue
        there = seen_there(probe, content)
        if there is not None:
            assert here == there, name
            compared += 1
    assert compared > 100
