"""Layers of torch.nn and small nets of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..cases import Case
from .torch_common import Net, Spec, convert, floats, integers

__all__ = ["NETS", "models"]


class _Sequence(nn.Module):
    """A recurrent layer: its outputs and its last states."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x)


class _Itself(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True, **options)

    def forward(self, x: torch.Tensor) -> Any:
        return self.attention(x, x, x)


class _Unet(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.middle = nn.Sequential(nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.GroupNorm(2, 2 * width), nn.SiLU())
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.head = nn.Conv2d(2 * width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        here = self.down(x)
        return self.head(torch.cat([here, self.up(self.middle(here))], 1))


class _Detector(nn.Module):
    """Boxes and classes from two maps, as single-shot detectors make them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.next = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.heads = nn.ModuleList([nn.Conv2d(8, 3 * 7, 1), nn.Conv2d(8, 3 * 7, 1)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        here = functional.silu(self.body(x))
        maps = [here, functional.silu(self.next(here))]
        found = []
        for head, map_ in zip(self.heads, maps):
            b, _, h, w = map_.shape
            out = head(map_).view(b, 3, 7, h, w).permute(0, 1, 3, 4, 2)
            y, x_ = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            grid = torch.stack([x_, y], -1).float()
            middle = (out[..., :2].sigmoid() * 2 - 0.5 + grid) / w
            size = (out[..., 2:4].sigmoid() * 2).square()
            found.append(torch.cat([middle, size, out[..., 4:].sigmoid()], -1).reshape(b, -1, 7))
        return torch.cat(found, 1)


class _Block(nn.Module):
    """An inverted residual block with squeeze and excitation."""

    def __init__(self, width: int = 8, act: Callable[[], nn.Module] = nn.Hardswish) -> None:
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(width, 2 * width, 1, bias=False), nn.BatchNorm2d(2 * width), act())
        self.deep = nn.Sequential(
            nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=2 * width, bias=False), nn.BatchNorm2d(2 * width), act()
        )
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(2 * width, 4, 1), nn.ReLU(), nn.Conv2d(4, 2 * width, 1), nn.Hardsigmoid()
        )
        self.narrow = nn.Sequential(nn.Conv2d(2 * width, width, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.deep(self.wide(x))
        return x + self.narrow(y * self.squeeze(y))


class _Vit(nn.Module):
    def __init__(self, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 17, width))
        self.blocks = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(width, 4, 2 * width, activation="gelu", batch_first=True, norm_first=True)
                for _ in range(depth)
            )
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.blocks(x)[:, 0])


class _Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 16)
        self.layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
        self.head = nn.Linear(16, 40)

    def forward(self, at: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(at.shape[1])
        return self.head(self.layer(self.words(at), memory, tgt_mask=mask))


class _Bert(nn.Module):
    """Token, position and kind embeddings, an encoder, a pooler."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(64, width), nn.Embedding(16, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(width, 4, 64, activation="gelu", batch_first=True) for _ in range(2)]
        )
        self.pool = nn.Linear(width, width)

    def forward(self, at: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.words(at) + self.places(torch.arange(at.shape[1])) + self.kinds(kinds))
        for layer in self.layers:
            x = layer(x)
        return torch.tanh(self.pool(x[:, 0]))


class _Speech(nn.Module):
    """Convolutions over time, a bidirectional GRU, characters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(10, 12, 3, padding=1, stride=2)
        self.rnn = nn.GRU(12, 8, bidirectional=True, batch_first=True)
        self.head = nn.Linear(16, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.gelu(self.conv(x)).transpose(1, 2)
        return self.head(self.rnn(x)[0]).log_softmax(-1)


class _Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(4 + 4 * i, 4, 3, padding=1) for i in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv in self.convs:
            x = torch.cat([x, functional.relu(conv(x))], 1)
        return functional.avg_pool2d(x, 2).mean((2, 3))


def _mlp(width: int = 64) -> nn.Module:
    return nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 10))


def _layer(make: Callable[[], nn.Module], *inputs: Spec) -> Net:
    return Net(make, inputs)


NETS: dict[str, Net] = {
    "linear": _layer(lambda: nn.Linear(8, 5), floats(3, 8)),
    "linear_3d": _layer(lambda: nn.Linear(8, 5, bias=False), floats(2, 3, 8)),
    "bilinear_layer": _layer(lambda: nn.Bilinear(4, 5, 3), floats(2, 4), floats(2, 5)),
    "mlp": _layer(_mlp, floats(2, 32)),
    "conv1d": _layer(lambda: nn.Conv1d(3, 6, 3, stride=2, padding=1, dilation=2), floats(2, 3, 16)),
    "conv2d": _layer(lambda: nn.Conv2d(3, 6, 3, padding=1), floats(1, 3, 8, 9)),
    "conv2d_reflect": _layer(lambda: nn.Conv2d(3, 6, 3, padding=1, padding_mode="reflect"), floats(1, 3, 8, 9)),
    "conv2d_same": _layer(lambda: nn.Conv2d(3, 6, (2, 3), padding="same"), floats(1, 3, 8, 9)),
    "conv2d_groups": _layer(lambda: nn.Conv2d(4, 8, 3, groups=2, stride=2), floats(1, 4, 9, 9)),
    "conv2d_depthwise": _layer(lambda: nn.Conv2d(4, 8, 3, groups=4, padding=2, dilation=2), floats(1, 4, 9, 9)),
    "conv3d": _layer(lambda: nn.Conv3d(2, 3, 2, padding=1), floats(1, 2, 4, 5, 6)),
    "conv_transpose1d": _layer(lambda: nn.ConvTranspose1d(3, 4, 4, stride=2, padding=1), floats(1, 3, 7)),
    "conv_transpose2d": _layer(lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), floats(1, 3, 4, 5)),
    "conv_transpose2d_even": _layer(lambda: nn.ConvTranspose2d(3, 4, 4, stride=2, padding=1), floats(1, 3, 4, 5)),
    "conv_transpose2d_odd": _layer(lambda: nn.ConvTranspose2d(3, 4, 3, stride=3, padding=2), floats(1, 3, 4, 5)),
    "conv_transpose2d_groups": _layer(lambda: nn.ConvTranspose2d(4, 4, 2, stride=2, groups=2), floats(1, 4, 4, 5)),
    "conv_transpose2d_dilated": _layer(lambda: nn.ConvTranspose2d(3, 4, 3, dilation=2), floats(1, 3, 4, 5)),
    "conv_transpose3d": _layer(lambda: nn.ConvTranspose3d(2, 3, 2, stride=2), floats(1, 2, 3, 4, 3)),
    "batch_norm": _layer(lambda: nn.BatchNorm2d(4), floats(2, 4, 3, 5)),
    "layer_norm": _layer(lambda: nn.LayerNorm((3, 5)), floats(2, 4, 3, 5)),
    "group_norm": _layer(lambda: nn.GroupNorm(2, 4), floats(2, 4, 3, 5)),
    "instance_norm": _layer(lambda: nn.InstanceNorm2d(4, affine=True), floats(2, 4, 3, 5)),
    "rms_norm": _layer(lambda: nn.RMSNorm(8), floats(2, 3, 8)),
    "local_response": _layer(lambda: nn.LocalResponseNorm(3), floats(1, 6, 3, 4)),
    "lstm": _layer(lambda: _Sequence(nn.LSTM(5, 6, batch_first=True)), floats(2, 7, 5)),
    "lstm_two_layers": _layer(lambda: _Sequence(nn.LSTM(5, 6, num_layers=2, bidirectional=True)), floats(4, 2, 5)),
    "lstm_projected": _layer(lambda: _Sequence(nn.LSTM(5, 6, proj_size=3)), floats(4, 2, 5)),
    "gru": _layer(lambda: _Sequence(nn.GRU(5, 6, batch_first=True)), floats(2, 7, 5)),
    "rnn": _layer(lambda: _Sequence(nn.RNN(5, 6, nonlinearity="relu")), floats(4, 2, 5)),
    "lstm_cell": _layer(lambda: nn.LSTMCell(5, 6), floats(2, 5)),
    "gru_cell": _layer(lambda: nn.GRUCell(5, 6), floats(2, 5)),
    "multihead": _layer(_Itself, floats(2, 5, 16)),
    "multihead_bias": _layer(lambda: _Itself(add_bias_kv=True, add_zero_attn=True), floats(2, 5, 16)),
    "encoder_layer": _layer(lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), floats(2, 5, 16)),
    "encoder_layer_gelu": _layer(
        lambda: nn.TransformerEncoderLayer(32, 2, 64, activation="gelu", norm_first=True), floats(5, 1, 32)
    ),
    "decoder_layer": _layer(_Decoder, integers(40, 1, 6), floats(1, 5, 16)),
    "embedding_bag": _layer(lambda: nn.EmbeddingBag(9, 4, mode="mean"), integers(9, 3, 5, dtype=torch.int64)),
    "vit": _layer(_Vit, floats(1, 3, 16, 16)),
    "vit_wide": _layer(lambda: _Vit(128, 1), floats(1, 3, 16, 16)),
    "bert": _layer(_Bert, integers(64, 1, 12), integers(2, 1, 12)),
    "bert_wide": _layer(lambda: _Bert(128), integers(64, 1, 12), integers(2, 1, 12)),
    "speech": _layer(_Speech, floats(1, 10, 24)),
    "unet": _layer(_Unet, floats(1, 3, 16, 16)),
    "detector": _layer(_Detector, floats(1, 3, 32, 32)),
    "inverted_residual": _layer(_Block, floats(1, 8, 8, 8)),
    "inverted_residual_silu": _layer(lambda: _Block(8, nn.SiLU), floats(1, 8, 8, 8)),
    "inverted_residual_relu6": _layer(lambda: _Block(16, nn.ReLU6), floats(1, 16, 8, 8)),
    "dense_block": _layer(_Dense, floats(1, 4, 8, 8)),
    "upsample": _layer(
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(4, 2, 1)),
        floats(1, 3, 6, 6),
    ),
    "pooled": _layer(
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.LeakyReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3),
            nn.PReLU(8),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(32, 5),
            nn.Softmax(-1),
        ),
        floats(1, 3, 14, 14),
    ),
    "autoencoder": _layer(
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(4, 4, 4, stride=2, padding=1),
            nn.ELU(),
            nn.Conv2d(4, 1, 1),
            nn.Sigmoid(),
        ),
        floats(1, 1, 12, 12),
    ),
}


def models() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Each net as a case."""
    for name, net in NETS.items():
        yield f"torch_layers-{name}", partial(convert, f"torch_layers-{name}", net)
