"""Language models of litert-torch's own examples, made tiny: a prompt and a few steps through signatures with key caches."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import litert_torch
import torch
from litert_torch import backend
from litert_torch.generative.layers import kv_cache
from torch.utils import _pytree as pytree

from ..cases import Case, Step
from ..files import fit_inputs
from .torch_common import array_of, seed

__all__ = ["MODELS", "models"]

EXAMPLES = "litert_torch.generative.examples"

PROMPT = 8
CACHE = 16

#: Name: module, class, the function that gives its small configuration, and what goes over it.
MODELS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "smollm": ("smollm.smollm", "SmolLM", "get_fake_model_config", {}),
    "smollm_wide": ("smollm.smollm", "SmolLM", "get_fake_model_config", {"width": 128}),
    "smollm_no_composites": ("smollm.smollm", "SmolLM", "get_fake_model_config", {"enable_hlfb": False}),
    "smollm_transposed": ("smollm.smollm", "SmolLM", "get_fake_model_config", {"layout": kv_cache.KV_LAYOUT_TRANSPOSED}),
    "llama": ("llama.llama", "Llama", "get_fake_model_config", {}),
    "tiny_llama": ("tiny_llama.tiny_llama", "TinyLlama", "get_fake_model_config", {}),
    "gemma1": ("gemma.gemma1", "Gemma1", "get_fake_model_config", {}),
    "gemma1_wide": ("gemma.gemma1", "Gemma1", "get_fake_model_config", {"width": 128}),
    "gemma2": ("gemma.gemma2", "Gemma2", "get_fake_model_config", {}),
    "gemma3": ("gemma3.decoder", "Decoder", "get_fake_decoder_config_1b", {}),
    "gemma3_wide": ("gemma3.decoder", "Decoder", "get_fake_decoder_config_1b", {"width": 128}),
    "phi2": ("phi.phi2", "Phi2", "get_fake_model_config", {}),
    "phi3": ("phi.phi3", "Phi3_5Mini", "get_fake_model_config", {}),
    "phi4": ("phi.phi4", "Phi4Mini", "get_fake_model_config", {}),
    "qwen": ("qwen.qwen", "Qwen", "get_fake_model_config", {}),
    "qwen3": ("qwen.qwen3", "Qwen3", "get_fake_model_config", {}),
    "openelm": ("openelm.openelm", "OpenELM", "get_fake_model_config", {}),
    "falcon": ("falcon.falcon", "Falcon", "get_fake_model_config", {}),
    "deepseek": ("deepseek.deepseek", "DeepSeekDistillQwen", "get_fake_model_config", {}),
    "amd_llama": ("amd_llama_135m.amd_llama_135m", "AmdLlama", "get_fake_model_config", {}),
}


def _small(config: Any, width: int = 32, **fields: Any) -> Any:
    """The configuration with few, narrow heads; the relations between its numbers stay."""
    config.vocab_size, config.num_layers, config.max_seq_len = 64, 2, 32
    config.embedding_dim = width
    if config.embedding_scale is not None:
        config.embedding_scale = width**0.5
    blocks = config.block_configs
    if isinstance(blocks, Sequence):
        config.block_configs = blocks = blocks[: config.num_layers]
    for block in blocks if isinstance(blocks, Sequence) else [blocks]:
        attention = block.attn_config
        share = attention.num_heads // (attention.num_query_groups or attention.num_heads)
        attention.num_heads = 4
        attention.num_query_groups = max(1, 4 // min(share, 4))
        attention.head_dim = width // 4
        if attention.sliding_window_size is not None:
            attention.sliding_window_size = 6
        block.ff_config.intermediate_size = width
    for name, value in fields.items():
        setattr(config, name, value)
    return config


def _settled(model: torch.nn.Module, name: str) -> torch.nn.Module:
    """The model with weights of a trained one's size; some layers are made without values."""
    generator = torch.Generator().manual_seed(seed(name))
    with torch.no_grad():
        for key, value in model.named_parameters():
            noise = torch.randn(value.shape, generator=generator)
            if value.ndim > 1:
                value.copy_(noise / value.shape[-1] ** 0.5)
            else:
                value.copy_(0.1 * noise + (0 if "bias" in key else 1))
    return model.eval()


def named(tree: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors of a tree by the names that litert-torch gives them in signatures."""
    values, spec = pytree.tree_flatten(tree)
    names = backend.export_utils.flat_dict_names(backend.export_utils.get_children(spec), spec.context)
    return dict(zip(names, values))


def _convert(name: str, module: str, kind: str, configuration: str, extra: dict[str, Any]) -> Case:
    source = importlib.import_module(f"{EXAMPLES}.{module}")
    extra = dict(extra)
    layout = extra.pop("layout", kv_cache.KV_LAYOUT_DEFAULT)
    config = _small(getattr(source, configuration)(), **extra)
    model = _settled(getattr(source, kind)(config, CACHE), name)
    cache = kv_cache.KVCache.from_model_config(CACHE, config, kv_layout=layout)
    generator = torch.Generator().manual_seed(seed(name))
    feeds = [
        (
            f"prefill_{PROMPT}",
            torch.randint(1, 64, (1, PROMPT), generator=generator, dtype=torch.int32),
            torch.arange(PROMPT, dtype=torch.int32),
        )
    ]
    feeds += [
        (
            "decode",
            torch.randint(1, 64, (1, 1), generator=generator, dtype=torch.int32),
            torch.tensor([PROMPT + n], dtype=torch.int32),
        )
        for n in range(2)
    ]
    builder: Any = litert_torch
    for signature, tokens, places in feeds[:2]:
        builder = builder.signature(signature, model, sample_kwargs={"tokens": tokens, "input_pos": places, "kv_cache": cache})
    edge = builder.convert()
    steps = []
    for signature, tokens, places in feeds:
        tree = {"tokens": tokens, "input_pos": places, "kv_cache": cache}
        inputs = {key: array_of(value) for key, value in named(tree).items()}
        with torch.no_grad():
            answer = model(**tree)
        cache = answer["kv_cache"]
        steps.append(Step(inputs, {"own": {key: array_of(value) for key, value in named(answer).items()}}, signature))
    content = edge.model_content()
    fit_inputs(content, steps)
    return Case(name, f"litert-torch {module}", content, steps)


def models() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Each language model as a case."""
    for short, (module, kind, configuration, extra) in MODELS.items():
        name = f"torch_language-{short}"
        yield name, partial(_convert, name, module, kind, configuration, extra)
