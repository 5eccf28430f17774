"""Nets whose last bit decides a quantized value some layers later, node by node: each is fed what LiteRT's nodes before it gave."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator

import pytest

from .cases import read
from .record import RECORDED

pytest.importorskip("ai_edge_litert.interpreter")

from .engines import available
from .nodes import departures
from .oracle import Oracle

pytestmark = pytest.mark.sweep

NETS = [
    "timm_nets-efficientnet-dynamic4",
    "torch_layers-bert-dynamic8",
    "torch_layers-encoder_layer_gelu-hadamard4",
    "torch_layers-inverted_residual-dynamic8",
    "torch_layers-inverted_residual-static8",
    "torch_layers-inverted_residual_relu6-dynamic4",
    "torch_layers-mlp-blocks32",
    "torch_layers-pooled-static16",
    "torch_layers-unet-dynamic4",
    "torch_layers-unet-static16",
    "torch_layers-vit-hadamard4",
    "torch_layers-vit-static8",
]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    opened = Oracle()
    yield opened
    opened.close()


@pytest.mark.parametrize("name", NETS)
def test_every_node_that_is_given_what_litert_s_had_gives_what_litert_s_gives(name: str, oracle: Oracle) -> None:
    engines = tuple(engine for engine in ("numpy", "compiled") if available(engine))
    with zipfile.ZipFile(RECORDED / "quantized_torch.zip") as archive:
        case = read(archive, f"quantized-{name}")
    found = [" ".join(map(str, (*departure[:4], *departure.verdict))) for departure in departures(case, oracle, engines)]
    assert not found, "\n".join(found)
