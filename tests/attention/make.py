"""Makes the models of this folder, and records PyTorch's answers: python make.py (needs litert-torch 0.10 and torch 2.13).

Attention as litert-torch writes it, with `odml.scaled_dot_product_attention` as a composite: alone, in all layouts and with all
attributes, and inside tiny language models with key caches, prefill and decode. The weights are random numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import litert_torch
import numpy as np
import torch
from litert_torch.generative.examples.gemma import gemma1, gemma2
from litert_torch.generative.examples.gemma3 import decoder as gemma3
from litert_torch.generative.examples.llama import llama
from litert_torch.generative.layers import kv_cache
from litert_torch.generative.layers.scaled_dot_product_attention import scaled_dot_product_attention_with_hlfb
from litert_torch.generative.utilities import converter
from litert_torch.generative.utilities.export_config import ExportConfig
from litert_torch.hlfb import StableHLOCompositeBuilder

HERE = Path(__file__).parent
#: Values that the key caches hold.
LENGTH = 12
#: Tokens at once, and tokens one by one after them.
PROMPT, STEPS = 4, 4


class Attention(torch.nn.Module):
    """The function that litert-torch's layers call."""

    def __init__(self, size: int, scale: float | None = None, softcap: float | None = None) -> None:
        super().__init__()
        self.size, self.scale, self.softcap = size, scale, softcap

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention_with_hlfb(q, k, v, self.size, mask, self.scale, self.softcap)


class Unmasked(torch.nn.Module):
    """The composite without a mask, as litert-torch writes it for speech models; a decoder's has one inside."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        builder = StableHLOCompositeBuilder("odml.scaled_dot_product_attention", {"scale": 0.5})
        q, k, v = builder.mark_inputs(q, k, v)
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=0.5)
        return builder.mark_outputs(y.transpose(1, 2))


def save(name: str, file: Path, arrays: dict[str, np.ndarray]) -> None:
    """Keep a model with its answers in one compressed file."""
    np.savez_compressed(HERE / f"{name}.npz", model=np.frombuffer(file.read_bytes(), np.uint8), **arrays)
    file.unlink()


def record(name: str, model: torch.nn.Module, *inputs: torch.Tensor) -> None:
    """Convert, and keep inputs and PyTorch's output."""
    model, file = model.eval(), HERE / f"{name}.tflite"
    litert_torch.convert(model, inputs).export(str(file))
    arrays = {f"args_{number}": value.numpy() for number, value in enumerate(inputs)}
    save(name, file, {**arrays, "output": model(*inputs).detach().numpy()})


def operands(batch: int, time: int, heads: int, size: int, length: int, groups: int) -> list[torch.Tensor]:
    return [torch.randn(batch, *shape, size) for shape in ((time, heads), (length, groups), (length, groups))]


def causal(time: int, length: int, value: float, window: int = 100) -> torch.Tensor:
    rows, columns = torch.arange(length - time, length)[:, None], torch.arange(length)
    seen = (columns <= rows) & (columns > rows - window)
    return torch.where(seen, 0.0, value)[None, None]


def attentions() -> None:
    """One composite each."""
    lowest = torch.finfo(torch.float32).min
    for heads, groups in ((4, 4), (4, 2), (4, 1), (1, 1)):
        for kind, scale, softcap, mask in (
            ("plain", None, None, causal(3, 5, -torch.inf)),
            ("scaled", 0.7, None, causal(3, 5, lowest, window=2)),
            ("capped", 0.25, 2.5, causal(3, 5, -1e9)),
        ):
            record(f"attention_{heads}_{groups}_{kind}", Attention(8, scale, softcap), *operands(1, 3, heads, 8, 5, groups), mask)
    wide = operands(2, 3, 4, 8, 5, 1)
    record("attention_batch", Attention(8), *wide, causal(3, 5, -torch.inf).repeat(2, 1, 1, 1))
    record("attention_bias", Attention(8, 0.5), *operands(2, 3, 4, 8, 5, 2), torch.randn(2, 4, 3, 5))
    record("attention_step", Attention(8, None, 5.0), *operands(1, 1, 4, 8, 9, 1), causal(1, 9, -torch.inf, window=4))
    for groups in (4, 1):
        record(f"unmasked_{groups}", Unmasked(False), *operands(1, 3, 4, 8, 5, groups))
        record(f"causal_{groups}", Unmasked(True), *operands(1, 5, 4, 8, 5, groups))


def shrink(config: Any, heads: int, groups: int) -> Any:
    """A configuration of litert-torch's own examples, with as few numbers as possible."""
    config.vocab_size, config.num_layers, config.max_seq_len, config.embedding_dim = 24, 2, 32, 16
    if config.embedding_scale is not None:
        config.embedding_scale = config.embedding_dim**0.5
    blocks = config.block_configs if isinstance(config.block_configs, list) else [config.block_configs]
    if isinstance(config.block_configs, list):
        config.block_configs = blocks = blocks[:2]
    for position, block in enumerate(blocks):
        attention = block.attn_config
        attention.num_heads, attention.num_query_groups, attention.head_dim = heads, groups, 8
        if attention.sliding_window_size is not None:
            attention.sliding_window_size = 3
        block.ff_config.intermediate_size = 16
        if len(blocks) == 2 and position == 1 and hasattr(attention, "attn_type"):
            attention.attn_type = type(attention.attn_type).GLOBAL
    return config


def language_model(name: str, model: torch.nn.Module, config: Any) -> None:
    """Convert with the signatures that litert-torch gives language models; keep tokens, logits and caches of a conversation."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    model = model.eval()
    file = converter.convert_to_tflite(
        model, str(HERE), name, PROMPT, LENGTH, quantize="none", config=config, export_config=ExportConfig()
    )
    cache = kv_cache.KVCache.from_model_config(LENGTH, config)
    tokens = torch.randint(1, config.vocab_size, (1, PROMPT), dtype=torch.int)
    arrays: dict[str, np.ndarray] = {"prompt": tokens.numpy()}
    for step in range(1 + STEPS):
        first = 0 if step == 0 else PROMPT + step - 1
        positions = torch.arange(first, first + tokens.shape[1], dtype=torch.int)
        result = model(tokens, positions, cache)
        cache = result["kv_cache"]
        tokens = result["logits"][:, -1:].argmax(-1).to(torch.int)
        arrays[f"logits_{step}"] = result["logits"].detach().numpy()
        for layer, entry in enumerate(cache.caches):
            arrays[f"k_{layer}_{step}"] = entry.k_cache.detach().numpy()
            arrays[f"v_{layer}_{step}"] = entry.v_cache.detach().numpy()
    save(name, Path(file), arrays)


def language_models() -> None:
    """Gemma 1 (one key head), Gemma 2 (soft cap, sliding windows), Gemma 3 (one key head, sliding windows), Llama (shared heads)."""
    config = shrink(gemma1.get_fake_model_config(), 4, 1)
    language_model("gemma1", gemma1.Gemma1(config, LENGTH), config)
    config = shrink(gemma2.get_fake_model_config(), 4, 2)
    language_model("gemma2", gemma2.Gemma2(config, LENGTH), config)
    config = shrink(gemma3.get_fake_decoder_config_1b(), 4, 1)
    language_model("gemma3", gemma3.Decoder(config, LENGTH), config)
    config = shrink(llama.get_fake_model_config(), 4, 2)
    language_model("llama", llama.Llama(config, LENGTH), config)


if __name__ == "__main__":
    torch.manual_seed(7)
    if sys.argv[1:] != ["models"]:
        attentions()
    language_models()
