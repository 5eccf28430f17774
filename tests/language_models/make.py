"""Makes the language models that lie beside this script: `python make.py FOLDER`, with litert-torch 0.10.

Two layers each, a vocabulary of 128 tokens and random weights, but otherwise what litert-torch's examples are: prefill of 8 tokens
and decode of one as two signatures, the KV cache as inputs and outputs. The weights are int4 in blocks of 32 values.
"""

from __future__ import annotations

import copy
import sys

import torch
from litert_torch.generative.examples.gemma import gemma1
from litert_torch.generative.examples.gemma3 import decoder as gemma3
from litert_torch.generative.examples.llama import llama
from litert_torch.generative.utilities import converter
from litert_torch.generative.utilities.export_config import ExportConfig

PREFILL, CACHE = 8, 64


def shrunk(config, heads: int, groups: int, head: int, window: int | None = None):
    """A model's configuration with small numbers."""
    config.vocab_size, config.num_layers, config.max_seq_len = 128, 2, CACHE
    config.embedding_dim = 64
    if config.embedding_scale is not None:
        config.embedding_scale = config.embedding_dim**0.5
    blocks = config.block_configs if isinstance(config.block_configs, list) else [config.block_configs]
    config.block_configs = [copy.deepcopy(block) for block in (blocks * 2)[:2]]
    for block in config.block_configs:
        attention = block.attn_config
        attention.num_heads, attention.num_query_groups, attention.head_dim = heads, groups, head
        if attention.sliding_window_size is not None:
            attention.sliding_window_size = window
        block.ff_config.intermediate_size = 128
    return config


MODELS = {
    "llama": (llama.Llama, lambda: shrunk(llama.get_1b_model_config(), 4, 2, 16)),
    "gemma": (gemma1.Gemma1, lambda: shrunk(gemma1.get_model_config_2b(), 4, 1, 16)),
    "gemma3": (gemma3.Decoder, lambda: shrunk(gemma3.get_decoder_config_1b(), 4, 1, 16, window=16)),
}


def make(folder: str, name: str) -> None:
    """Write one model, as NAME_q4_block32_ekv64.tflite."""
    torch.manual_seed(len(name))
    model_class, config = MODELS[name]
    model = model_class(config(), mask_cache_size=CACHE)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.normal_(0, 0.125)  # 1 / sqrt(64): what goes in keeps its size
    model.eval()
    converter.convert_to_tflite(
        model,
        output_path=folder,
        output_name_prefix=name,
        prefill_seq_len=PREFILL,
        kv_cache_max_len=CACHE,
        quantize=converter.QuantizationName.DYNAMIC_INT4_BLOCK32,
        export_config=ExportConfig(),
    )


if __name__ == "__main__":
    for name in sys.argv[2:] or MODELS:
        make(sys.argv[1], name)
