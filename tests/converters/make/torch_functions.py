"""Functions of PyTorch, each a model of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch.nn import functional

from ..cases import Case
from .torch_common import Net, convert, flags, floats, function, integers

__all__ = ["NETS", "models"]

INDEX = torch.int64

NETS: dict[str, Net] = {
    "scatter": function(lambda x, at, y: torch.scatter(x, 1, at, y), floats(4, 6), integers(6, 4, 3, dtype=INDEX), floats(4, 3)),
    "scatter_add": function(
        lambda x, at, y: torch.scatter_add(x, 0, at, y), floats(4, 6), integers(4, 3, 6, dtype=INDEX), floats(3, 6)
    ),
    "scatter_amax": function(
        lambda x, at, y: torch.scatter_reduce(x, 1, at, y, "amax"), floats(4, 6), integers(6, 4, 5, dtype=INDEX), floats(4, 5)
    ),
    "scatter_prod": function(
        lambda x, at, y: torch.scatter_reduce(x, 1, at, y, "prod"), floats(4, 6), integers(6, 4, 5, dtype=INDEX), floats(4, 5)
    ),
    "scatter_int": function(
        lambda x, at, y: torch.scatter_add(x, 0, at, y), integers(9, 5), integers(5, 7, dtype=INDEX), integers(9, 7)
    ),
    "index_add": function(lambda x, at, y: torch.index_add(x, 0, at, y), floats(5, 3), integers(5, 4, dtype=INDEX), floats(4, 3)),
    "index_put": function(lambda x, at, y: torch.index_put(x, (at,), y), floats(5, 3), integers(5, 2, dtype=INDEX), floats(2, 3)),
    "index_put_add": function(
        lambda x, at, y: torch.index_put(x, (at,), y, accumulate=True), floats(5, 3), integers(5, 4, dtype=INDEX), floats(4, 3)
    ),
    "masked_fill": function(lambda x, m: x.masked_fill(m, -1e9).softmax(-1), floats(2, 3, 5), flags(2, 3, 5)),
    "where": function(lambda x, y: torch.where(x > y, x * 2, y.abs()), floats(3, 4), floats(1, 4)),
    "gather": function(lambda x, at: torch.gather(x, 1, at), floats(4, 6), integers(6, 4, 2, dtype=INDEX)),
    "index_select": function(lambda x, at: x.index_select(1, at), floats(2, 6, 3), integers(6, 4, dtype=INDEX)),
    "fancy_index": function(
        lambda x, a, b: x[a, :, b], floats(4, 3, 5), integers(4, 6, dtype=INDEX), integers(5, 6, dtype=INDEX)
    ),
    "embedding": function(lambda t, at: functional.embedding(at, t), floats(9, 4), integers(9, 2, 5, dtype=INDEX)),
    "sort": function(lambda x: torch.sort(x, -1).values, floats(3, 9)),
    "sort_descending": function(lambda x: torch.sort(x, dim=0, descending=True).values, floats(7, 2)),
    "sort_int": function(lambda x: torch.sort(x, dim=-1).values, integers(50, 2, 8)),
    "topk": function(lambda x: torch.topk(x, 3), floats(2, 9)),
    "topk_smallest": function(lambda x: torch.topk(x, 3, largest=False), floats(2, 9)),
    "quantile": function(lambda x: torch.quantile(x, torch.tensor([0.1, 0.5, 0.75]), 1), floats(3, 9)),
    "quantile_nearest": function(lambda x: torch.quantile(x, 0.3, 1, interpolation="nearest"), floats(3, 9)),
    "kthvalue": function(lambda x: torch.sort(x, 1).values[:, 2], floats(3, 7)),
    "cumsum": function(lambda x: torch.cumsum(x, 1), floats(3, 8)),
    "logsumexp": function(lambda x: torch.logsumexp(x, (1, 2)), floats(2, 3, 4)),
    "flip": function(lambda x: torch.flip(x, (0, 2)), floats(3, 4, 5)),
    "flip_int": function(lambda x: torch.flip(x, (1,)), integers(9, 3, 4)),
    "roll": function(lambda x: torch.roll(x, (1, -2), (1, 2)), floats(2, 5, 6)),
    "rot90": function(lambda x: torch.rot90(x, 1, (2, 3)), floats(1, 2, 3, 4)),
    "fold": function(lambda x: functional.fold(x, (6, 6), 3, stride=1, padding=1), floats(1, 18, 36)),
    "unfold": function(lambda x: functional.unfold(x, 3, padding=1, stride=2), floats(1, 2, 6, 6)),
    "pixel_shuffle": function(lambda x: functional.pixel_shuffle(x, 2), floats(1, 8, 3, 3)),
    "pixel_unshuffle": function(lambda x: functional.pixel_unshuffle(x, 2), floats(1, 2, 6, 6)),
    "channel_shuffle": function(lambda x: functional.channel_shuffle(x, 2), floats(1, 6, 3, 3)),
    "nearest": function(lambda x: functional.interpolate(x, scale_factor=2, mode="nearest"), floats(1, 3, 4, 5)),
    "bilinear": function(
        lambda x: functional.interpolate(x, size=(7, 9), mode="bilinear", align_corners=False), floats(1, 3, 4, 5)
    ),
    "bilinear_corners": function(
        lambda x: functional.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True), floats(1, 3, 4, 5)
    ),
    "bicubic": function(
        lambda x: functional.interpolate(x, size=(6, 7), mode="bicubic", align_corners=False), floats(1, 2, 4, 5)
    ),
    "linear_1d": function(lambda x: functional.interpolate(x, size=9, mode="linear", align_corners=False), floats(1, 3, 5)),
    "grid_sample": function(
        lambda x, g: functional.grid_sample(x, g.tanh(), align_corners=False), floats(1, 2, 5, 6), floats(1, 4, 3, 2)
    ),
    "grid_nearest_border": function(
        lambda x, g: functional.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True),
        floats(1, 2, 5, 6),
        floats(1, 4, 3, 2),
    ),
    "max_pool": function(lambda x: functional.max_pool2d(x, 3, 2, 1), floats(1, 3, 9, 9)),
    "max_pool_ceil": function(lambda x: functional.max_pool2d(x, 2, 2, ceil_mode=True), floats(1, 3, 7, 9)),
    "max_pool_dilated": function(lambda x: functional.max_pool2d(x, 2, 1, dilation=2), floats(1, 3, 7, 9)),
    "max_pool_indices": function(lambda x: functional.max_pool2d(x, 2, return_indices=True), floats(1, 2, 4, 6)),
    "avg_pool": function(lambda x: functional.avg_pool2d(x, 3, 2, 1), floats(1, 3, 9, 9)),
    "avg_pool_valid_count": function(lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False), floats(1, 3, 9, 9)),
    "avg_pool_1d": function(lambda x: functional.avg_pool1d(x, 3, 1, 1), floats(2, 3, 9)),
    "adaptive_avg": function(lambda x: functional.adaptive_avg_pool2d(x, (2, 3)), floats(1, 3, 7, 8)),
    "max_pool_3d": function(lambda x: functional.max_pool3d(x, 2), floats(1, 2, 4, 4, 6)),
    "lp_pool": function(lambda x: functional.lp_pool2d(x, 2, 2), floats(1, 2, 4, 6)),
    "gelu": function(functional.gelu, floats(3, 9)),
    "gelu_tanh": function(lambda x: functional.gelu(x, approximate="tanh"), floats(3, 9)),
    "activations": function(
        lambda x: torch.cat(
            [
                functional.silu(x),
                functional.mish(x),
                functional.elu(x),
                functional.selu(x),
                functional.celu(x, 0.7),
                functional.softplus(x),
                functional.hardswish(x),
                functional.hardsigmoid(x),
                functional.hardtanh(x),
                functional.leaky_relu(x),
                functional.relu6(x),
                functional.softsign(x),
                functional.tanhshrink(x),
                functional.logsigmoid(x),
                functional.softshrink(x),
            ],
            1,
        ),
        floats(3, 9),
    ),
    "glu": function(lambda x: functional.glu(x, 1), floats(2, 8, 3)),
    "prelu": function(lambda x, a: functional.prelu(x, a), floats(2, 4, 3, 3), floats(4)),
    "softmax_axes": function(lambda x: (x.softmax(1), x.log_softmax(0), functional.softmin(x, 2)), floats(3, 4, 5)),
    "elementwise": function(
        lambda x: torch.stack(
            [
                x.exp(),
                x.abs().log1p(),
                x.expm1(),
                x.abs().sqrt(),
                x.abs().add(0.1).rsqrt(),
                x.sin(),
                x.cos(),
                x.tan(),
                x.atan(),
                x.tanh().asin(),
                x.erf(),
                x.sign(),
                x.floor(),
                x.ceil(),
                x.round(),
                x.trunc(),
                x.frac(),
                x.square(),
                x.reciprocal(),
            ]
        ),
        floats(2, 7),
    ),
    "atan2_pow": function(
        lambda x, y: (torch.atan2(x, y), x.abs().pow(y), torch.fmod(x, y), torch.remainder(x, y)), floats(3, 5), floats(3, 5)
    ),
    "int_math": function(
        lambda x, y: (x // (y + 1), x % (y + 1), x & y, x | y, x ^ y, x << 2, x >> 1, ~x),
        integers(99, 3, 5),
        integers(9, 3, 5),
    ),
    "compare": function(
        lambda x, y: ((x > y) & (x != y) | ~(x <= 0), torch.isnan(x / y), (x == x).any(1), (x > 0).all(0)),
        floats(3, 5),
        floats(3, 5),
    ),
    "clamp": function(lambda x: (x.clamp(-0.5, 0.7), x.clamp(min=0.1), x.clamp(max=torch.tensor([0.1, 0.2]))), floats(3, 2)),
    "reductions": function(
        lambda x: (
            x.sum(1),
            x.mean((0, 2)),
            x.amax(2),
            x.amin(0),
            x.prod(1),
            x.std(2),
            x.var((1, 2), unbiased=False),
            x.norm(dim=1),
        ),
        floats(3, 4, 5),
    ),
    "argmax": function(lambda x: (x.argmax(1), x.argmin(2), x.argmax()), floats(3, 4, 5)),
    "max_with_index": function(lambda x: torch.max(x, 2), floats(3, 4, 5)),
    "einsum": function(lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b), floats(2, 3, 4, 5), floats(2, 3, 6, 5)),
    "einsum_odd": function(lambda a, b: torch.einsum("bij,jkb->kib", a, b), floats(2, 3, 4), floats(4, 5, 2)),
    "matmul_broadcast": function(lambda a, b: a @ b, floats(2, 1, 3, 4), floats(5, 4, 6)),
    "matmul_vector": function(lambda a, b: a @ b, floats(2, 3, 4), floats(4)),
    "bmm_transposed": function(lambda a, b: torch.bmm(a, b.transpose(1, 2)), floats(2, 3, 4), floats(2, 5, 4)),
    "outer_kron": function(lambda a, b: (torch.outer(a, b), torch.kron(a, b)), floats(3), floats(4)),
    "cdist": function(lambda a, b: torch.cdist(a, b), floats(2, 3, 4), floats(2, 5, 4)),
    "cosine": function(lambda a, b: functional.cosine_similarity(a, b, 1), floats(3, 4), floats(3, 4)),
    "normalize": function(lambda x: functional.normalize(x, dim=1), floats(3, 4)),
    "triangle": function(lambda x: (x.tril(), x.triu(1), x.tril(-1)), floats(2, 5, 5)),
    "diagonal": function(lambda x: (x.diagonal(dim1=1, dim2=2), torch.diag_embed(x[0])), floats(2, 5, 5)),
    "pads": function(
        lambda x: (
            functional.pad(x, (1, 2, 0, 1)),
            functional.pad(x, (1, 2), value=3.5),
            functional.pad(x, (1, 2, 1, 0), mode="reflect"),
            functional.pad(x, (1, 2, 1, 0), mode="replicate"),
            functional.pad(x, (1, 2, 1, 0), mode="circular"),
            functional.pad(x, (-1, -1, 1, 0)),
        ),
        floats(1, 2, 4, 5),
    ),
    "shapes": function(
        lambda x: (
            x.repeat(2, 1, 3),
            x.expand(4, 3, 4),
            x.repeat_interleave(2, 1),
            x.unflatten(2, (2, 2)).movedim(3, 0),
            x.squeeze(0).t().contiguous().view(2, 6),
            torch.stack(x.unbind(1)),
            torch.cat(x.chunk(2, 2), 1),
        ),
        floats(1, 3, 4),
    ),
    "slices": function(
        lambda x: (x[:, 1:, ::2], x[..., -1], x[0, None, 2:0:-1] if False else x[:1, -3:-1], x.narrow(1, 1, 2)), floats(2, 4, 6)
    ),
    "one_hot": function(lambda at: functional.one_hot(at, 7).float(), integers(7, 2, 5, dtype=INDEX)),
    "casts": function(lambda x: (x.int(), x.to(torch.int64), x.bool(), x.half().float(), x.to(torch.uint8)), floats(3, 5)),
    "half_chain": function(lambda x: (x.exp() * 0.5 + x.tanh()).softmax(-1), floats(3, 8, dtype=torch.float16)),
    "half_elementwise": function(
        lambda x: torch.stack(
            [x.exp(), x.abs().sqrt(), x.abs().add(0.5).log(), x.sin(), x.sigmoid(), x.relu(), -x, x.abs().rsqrt()]
        ),
        floats(3, 8, dtype=torch.float16),
    ),
    "half_reduce": function(
        lambda x: (x.mean(1), x.amax(0), x.sum((0, 1)), functional.layer_norm(x, (8,))), floats(3, 8, dtype=torch.float16)
    ),
    "half_matmul": function(
        lambda a, b: functional.gelu(a @ b), floats(3, 8, dtype=torch.float16), floats(8, 5, dtype=torch.float16)
    ),
    "attention_function": function(
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v),
        floats(1, 2, 5, 8),
        floats(1, 2, 7, 8),
        floats(1, 2, 7, 8),
    ),
    "attention_causal": function(
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        floats(1, 2, 6, 8),
        floats(1, 2, 6, 8),
        floats(1, 2, 6, 8),
    ),
    "attention_mask": function(
        lambda q, k, v, m: functional.scaled_dot_product_attention(q, k, v, attn_mask=m),
        floats(2, 2, 4, 8),
        floats(2, 2, 6, 8),
        floats(2, 2, 6, 8),
        flags(2, 1, 4, 6),
    ),
    "fft": function(lambda x: torch.fft.rfft2(x).abs(), floats(2, 8, 8)),
    "stft": function(lambda x: torch.stft(x, 16, 8, window=torch.hann_window(16), return_complex=True).abs(), floats(1, 64)),
    "histogram": function(
        lambda at: torch.bincount(at, minlength=5) if False else functional.one_hot(at, 5).sum(0), integers(5, 9, dtype=INDEX)
    ),
    "bucketize": function(lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5])), floats(3, 4)),
    "searchsorted": function(lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5]), x), floats(3, 4)),
    "arange_like": function(lambda x: torch.arange(x.shape[1]) * x, integers(9, 2, 5)),
    "unbind_meshgrid": function(lambda a, b: torch.meshgrid(a, b, indexing="ij"), floats(3), floats(4)),
    "empty_batch": function(lambda x: torch.cat([x[:, :0], x], 1).reshape(2, -1), floats(2, 3, 4)),
    "uint8_equal": function(lambda x, y: x == y, integers(5, 3, 4, dtype=torch.uint8), integers(5, 3, 4, dtype=torch.uint8)),
    "int8_math": function(lambda x, y: (x + y, x * y), integers(9, 3, 4, dtype=torch.int8), integers(9, 3, 4, dtype=torch.int8)),
    "int16_math": function(
        lambda x, y: (x + y, x - y, torch.maximum(x, y)),
        integers(99, 3, 4, dtype=torch.int16),
        integers(99, 3, 4, dtype=torch.int16),
    ),
    "int64_math": function(
        lambda x, y: (x + y, x * y, x.sum(1), x.amax(0)), integers(1 << 40, 3, 4, dtype=INDEX), integers(99, 3, 4, dtype=INDEX)
    ),
    "float64_math": function(
        lambda x, y: (x + y, x * y, x.exp()), floats(3, 4, dtype=torch.float64), floats(3, 4, dtype=torch.float64)
    ),
}


def models() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Each net as a case."""
    for name, net in NETS.items():
        yield f"torch_functions-{name}", partial(convert, f"torch_functions-{name}", net)
