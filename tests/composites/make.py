"""Makes composites.npz: python make.py (needs litert-torch 0.10 and torch 2.13).

Every composite that is left in the files of litert-torch 0.10, with all attributes that it writes, and PyTorch's answers. Those of `aten`
operators and of upsampling, padding and embeddings are not among them: the converter makes built-in operators of them.
`odml.scaled_dot_product_attention` is in tests/attention.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import litert_torch
import numpy as np
import torch
from litert_torch.generative.export_hf.core.speech import asr_model
from litert_torch.generative.export_hf.experimental.composites import (
    cache_update,
    fused_sdpa_cache_update,
    qkv_norm_rope,
    rope,
    runtime_batched_matmul,
    short_conv,
    swiglu,
)
from litert_torch.generative.layers.normalization import RMSNorm, layer_norm_with_hlfb, rms_norm_with_hlfb

HERE = Path(__file__).parent
Case = tuple[str, torch.nn.Module, tuple[torch.Tensor, ...]]


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.function(*arguments)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def norms() -> Iterator[Case]:
    for shape in ((8,), (4, 8), (2, 3, 8), (1, 3, 4, 16), (1, 128, 160)):
        for epsilon in (1e-6, 0.5):
            one = torch.ones(())
            yield (
                f"rms_norm {list(shape)} {epsilon}",
                Function(lambda x, w, epsilon=epsilon, one=one: rms_norm_with_hlfb(x, w, epsilon, one)),
                (3 * normal(*shape), normal(shape[-1])),
            )
    for scaled in (False, True):
        layer = RMSNorm(8, zero_centered_gamma=True, with_scale=scaled, enable_hlfb=True)
        layer.weight.data = normal(8)
        if scaled:
            layer.scale.data = normal(8)
        yield f"rms_norm in a layer{', scaled' if scaled else ''}", layer, (normal(2, 3, 8),)
    yield "rms_norm of speech models", asr_model.AsrRMSNorm(1e-5, normal(8)), (normal(2, 3, 8),)
    for shape, of in (((4, 8), (8,)), ((2, 3, 8), (8,)), ((2, 3, 4, 8), (4, 8)), ((2, 8, 3, 8), (8,)), ((1, 64, 96), (96,))):
        for epsilon in (1e-5, 0.25):
            yield (
                f"layer_norm {list(shape)} {list(of)} {epsilon}",
                Function(lambda x, w, b, of=of, epsilon=epsilon: layer_norm_with_hlfb(x, list(of), w, b, epsilon)),
                (2 * normal(*shape) + 5, normal(*of), normal(*of)),
            )
    layer = asr_model.AsrLayerNorm(torch.Size([8]), 1e-5, normal(8), normal(8))
    yield "layer_norm of speech models", layer, (normal(2, 3, 8),)
    litert_torch.config.enable_group_norm_composite = True
    for groups in (1, 2, 4):
        norm = torch.nn.GroupNorm(groups, 8)
        norm.weight.data, norm.bias.data = normal(8), normal(8)
        yield f"group_norm of {groups}", norm, (normal(2, 8, 5, 6) + 3,)
        network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), norm, torch.nn.Conv2d(8, 2, 1))
        yield f"group_norm of {groups} between convolutions", network, (normal(1, 3, 7, 9),)


def activations() -> Iterator[Case]:
    yield "swiglu", Function(swiglu.apply_swiglu), (normal(2, 3, 16),)
    yield "swiglu of a size", Function(lambda x: swiglu.apply_swiglu(x, 8, "silu")), (normal(2, 3, 16),)
    yield "swiglu of gelu_tanh", Function(lambda x: swiglu.apply_swiglu(x, None, "gelu_tanh")), (normal(2, 3, 16),)
    position = torch.tensor([0, 1, 2, 7], dtype=torch.int32)
    for name, at, base, proportion in (
        ("", position, 10000.0, 1.0), (" of batches", position[None], 500000.0, 1.0), (" in part", position, 10000.0, 0.5),
    ):  # fmt: skip
        yield (
            f"rope{name}",
            Function(
                lambda x, at, base=base, proportion=proportion: rope.apply_rope_composite(x, at, base, proportion=proportion)
            ),
            (normal(1, 2, 4, 8), at),
        )
    for name, more in (("", {}), (" with values", {"has_v_norm": True}), (" in part", {"proportion": 0.5, "base": 500.0})):
        yield (
            f"qkv_norm_rope{name}",
            Function(
                lambda x, at, q, k, more=more: qkv_norm_rope.apply_qkv_norm_rope(
                    x, at, q, k, num_heads=4, num_kv_heads=2, head_dim=8, **more
                )
            ),
            (normal(1, 4, 64), position, normal(8), normal(8)),
        )
    yield (
        "qkv_norm_rope of queries",
        Function(lambda x, at, q: qkv_norm_rope.apply_q_norm_rope(x, at, q, num_heads=4, head_dim=8)),
        (normal(1, 4, 32), position, normal(8)),
    )
    for name, more in (("", ()), (" with valid tokens", (torch.tensor([2], dtype=torch.int32),))):
        yield (
            f"short_conv_step{name}",
            Function(
                lambda x, state, weight, *more: short_conv.apply_short_conv_step(x, state, weight, None, *(more or (None,)))
            ),
            (normal(1, 4, 24), normal(1, 8, 2), normal(8, 1, 3), *more),
        )


def caches() -> Iterator[Case]:
    param = torch.tensor([[[[3, 4, 0, 1, 0, 0, 0]]]], dtype=torch.int32)
    at_k, at_v = (torch.tensor(place, dtype=torch.int32) for place in ([0, 0, 3, 0], [0, 0, 0, 3]))
    for name, ring in (("", False), (" of a ring", True)):
        yield (
            f"cache_update{name}",
            Function(
                lambda k, v, param, ck, cv, at_k, at_v, ring=ring: cache_update.cache_update(
                    k, v, param, ck, cv, at_k, at_v, kv_heads=2, kv_batch_size=1, cache_len=8, head_size=4, is_ring_buffer=ring
                )
            ),
            (normal(1, 2, 1, 4), normal(1, 2, 1, 4), param, normal(1, 2, 8, 4), normal(1, 2, 4, 8), at_k, at_v),
        )
    yield "runtime_bmm", Function(runtime_batched_matmul.runtime_bmm), (normal(1, 2, 3, 4), normal(1, 2, 5, 4), param)
    for update in (False, True):
        yield (
            f"fused_sdpa_cache_update{' and update' if update else ''}",
            Function(
                lambda *given, update=update: tuple(
                    each
                    for each in fused_sdpa_cache_update.fused_sdpa_cache_update(*given, update, 30.0 if update else None)
                    if each is not None
                )
            ),
            (
                normal(1, 2, 4, 8), normal(1, 2, 6, 8), normal(1, 2, 8, 6), normal(1, 2, 2, 8), normal(1, 2, 8, 2),
                normal(1, 1, 2, 8), torch.tensor([5, 7, 0, 2], dtype=torch.int32),
            ),
        )  # fmt: skip


def main() -> None:
    torch.manual_seed(5)
    arrays: dict[str, np.ndarray] = {}
    for name, module, arguments in (*norms(), *activations(), *caches()):
        with torch.no_grad():
            found = module.eval()(*(each.clone() for each in arguments))
        outputs = found if isinstance(found, tuple) else (found,)
        try:
            edge = litert_torch.convert(module.eval(), arguments)
        except Exception as error:
            sys.stdout.write(f"{name}: litert-torch does not convert it: {type(error).__name__} {str(error)[:200]}\n")
            continue
        with tempfile.TemporaryDirectory() as folder:
            edge.export(str(Path(folder) / "model.tflite"))
            content = (Path(folder) / "model.tflite").read_bytes()
        arrays[f"{name}/model"] = np.frombuffer(content, np.uint8)
        arrays |= {f"{name}/args_{place}": each.numpy() for place, each in enumerate(arguments)}
        arrays |= {f"{name}/output_{place}": each.numpy() for place, each in enumerate(outputs)}
        sys.stdout.write(f"{name}: {len(content)} bytes\n")
        sys.stdout.flush()
        np.savez_compressed(HERE / "composites.npz", **arrays)


if __name__ == "__main__":
    main()
