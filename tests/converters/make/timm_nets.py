"""Nets of timm with few and narrow stages."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

from torch import nn

from ..cases import Case
from .torch_common import Net, convert, floats

__all__ = ["NETS", "models"]

if importlib.util.find_spec("torchvision") is None:
    # timm imports pictures' transforms and one layer, which no net here uses, from a package that is large.
    for _name in (
        "",
        ".ops",
        ".ops.misc",
        ".models",
        ".models.feature_extraction",
        ".transforms",
        ".transforms.functional",
        ".datasets",
    ):
        sys.modules[f"torchvision{_name}"] = mock.MagicMock()
    sys.modules["torchvision.ops.misc"].FrozenBatchNorm2d = type("FrozenBatchNorm2d", (nn.Module,), {})
import timm
from timm.models import mlp_mixer

#: Name: timm's name, the picture's side, and the options that make it small.
NETS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "resnet": ("resnet10t", 32, {"channels": (8, 16, 16, 24), "stem_width": 8}),
    "resnet_bottleneck": ("resnet26", 32, {"layers": (1, 1, 1, 1), "channels": (8, 8, 16, 16)}),
    "resnext": ("resnext50_32x4d", 32, {"layers": (1, 1, 1, 1), "channels": (8, 8, 16, 16), "cardinality": 4, "base_width": 16}),
    "mobilenetv2": ("mobilenetv2_035", 32, {}),
    "mobilenetv3": ("mobilenetv3_small_050", 32, {}),
    "mobilenetv4": ("mobilenetv4_conv_small_035", 32, {}),
    "efficientnet": ("test_efficientnet", 32, {}),
    "efficientnet_norms": ("test_efficientnet_ln", 32, {}),
    "efficientnet_gn": ("test_efficientnet_gn", 32, {}),
    "nfnet": ("test_nfnet", 32, {}),
    "convnext_test": ("test_convnext2", 32, {}),
    "vit4": ("test_vit4", 32, {"img_size": 32}),
    "convnext": ("convnext_atto", 32, {"depths": (1, 1, 2, 1), "dims": (8, 16, 24, 32)}),
    "convnextv2": ("convnextv2_atto", 32, {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32)}),
    "swin": (
        "swin_tiny_patch4_window7_224",
        32,
        {"img_size": 32, "window_size": 4, "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4)},
    ),
    "swin_v2": (
        "swinv2_tiny_window8_256",
        32,
        {"img_size": 32, "window_size": 4, "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4)},
    ),
    "vit": ("vit_tiny_patch16_224", 32, {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4}),
    "deit": (
        "deit_tiny_distilled_patch16_224",
        32,
        {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4},
    ),
    "tiny_vit": (
        "tiny_vit_5m_224",
        64,
        {"embed_dims": (8, 16, 16, 24), "depths": (1, 1, 1, 1), "num_heads": (1, 2, 2, 3), "window_sizes": (4, 4, 4, 2)},
    ),
    "pvt": ("pvt_v2_b0", 32, {"depths": (1, 1, 1, 1), "embed_dims": (8, 16, 24, 32), "num_heads": (1, 2, 3, 4)}),
    "xcit": ("xcit_nano_12_p16_224", 32, {"img_size": 32, "embed_dim": 32, "depth": 2, "num_heads": 4, "cls_attn_layers": 1}),
    "mixer": ("MlpMixer", 32, {"img_size": 32, "patch_size": 8, "embed_dim": 32, "num_blocks": 2}),
    "gmlp": (
        "MlpMixer",
        32,
        {"img_size": 32, "patch_size": 8, "embed_dim": 32, "num_blocks": 2, "block_layer": mlp_mixer.SpatialGatingBlock},
    ),
    "resmlp": (
        "MlpMixer",
        32,
        {"img_size": 32, "patch_size": 8, "embed_dim": 32, "num_blocks": 2, "block_layer": mlp_mixer.ResBlock},
    ),
    "edgenext": ("edgenext_xx_small", 64, {"depths": (1, 1, 2, 2), "dims": (8, 16, 24, 32), "heads": (2, 2, 2, 2)}),
    "repvgg": ("test_byobnet", 32, {}),
    "repvit": ("repvit_m0_9", 64, {"embed_dim": (8, 16, 24, 32), "depth": (1, 1, 1, 1)}),
    "densenet": ("densenet121", 32, {"growth_rate": 4, "block_config": (1, 1, 1, 1)}),
    "ghostnet": ("ghostnet_050", 32, {}),
    "inception_next": ("inception_next_atto", 32, {"depths": (1, 1, 1, 1), "dims": (16, 16, 24, 32)}),
    "mobilevit": ("mobilevit_xxs", 64, {}),
    "coat_lite": (
        "coat_lite_tiny",
        32,
        {"img_size": 32, "embed_dims": (8, 16, 24, 32), "serial_depths": (1, 1, 1, 1), "num_heads": 4},
    ),
    "pit": ("pit_ti_224", 64, {"img_size": 64, "base_dims": (8, 8, 8), "depth": (1, 1, 1), "heads": (2, 2, 4)}),
    "cait": ("cait_xxs24_224", 32, {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 1, "num_heads": 4}),
    "levit": ("levit_128s", 64, {"img_size": 64, "embed_dim": (16, 24, 32), "depth": (1, 1, 1), "num_heads": (2, 3, 4)}),
    "maxvit": ("test_vit", 32, {"img_size": 32}),
}


def _net(name: str) -> Net:
    model, side, options = NETS[name]

    def make() -> nn.Module:
        if hasattr(mlp_mixer, model):  # what create_model would set twice
            return getattr(mlp_mixer, model)(num_classes=10, **options)
        return timm.create_model(model, pretrained=False, num_classes=10, **options)

    return Net(make, [floats(1, 3, side, side)])


def models() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Each net as a case."""
    for short in NETS:
        name = f"timm_nets-{short}"
        yield name, partial(convert, name, _net(short))
