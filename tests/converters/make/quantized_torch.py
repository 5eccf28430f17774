"""Models of litert-torch by the recipes of ai-edge-quantizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

from ..cases import Case
from . import timm_nets, torch_language, torch_layers
from .recipes import quantize

__all__ = ["QUANTIZED", "models"]

_DENSE = ("dynamic8", "dynamic4", "blocks32", "hadamard4", "weights8", "static8", "static16")
_CONV = ("dynamic8", "dynamic4", "weights4", "static8", "static16")

#: The maker's module, the net, and its recipes.
QUANTIZED: dict[tuple[str, str], tuple[str, ...]] = {
    ("torch_layers", "mlp"): (
        *_DENSE,
        "dynamic2",
        "blocks32_8bit",
        "blocks32_2bit",
        "hadamard8",
        "weights4",
        "octav4",
        "legacy8",
        "halves",
    ),
    ("torch_layers", "conv2d"): (*_CONV, "weights8", "halves", "legacy8"),
    ("torch_layers", "conv2d_depthwise"): _CONV,
    ("torch_layers", "conv2d_groups"): _CONV,
    ("torch_layers", "conv_transpose2d_even"): ("dynamic8", "static8", "static16"),
    ("torch_layers", "inverted_residual"): _CONV,
    ("torch_layers", "inverted_residual_relu6"): _CONV,
    ("torch_layers", "unet"): _CONV,
    ("torch_layers", "detector"): ("dynamic8", "static8"),
    ("torch_layers", "pooled"): ("dynamic8", "static8", "static16"),
    ("torch_layers", "dense_block"): ("static8", "static16"),
    ("torch_layers", "multihead"): ("dynamic8", "static8", "static16"),
    ("torch_layers", "encoder_layer_gelu"): _DENSE,
    ("torch_layers", "vit"): _DENSE,
    ("torch_layers", "vit_wide"): ("blocks128", "hadamard4"),
    ("torch_layers", "bert"): _DENSE,
    ("torch_layers", "bert_wide"): ("blocks128",),
    ("torch_layers", "lstm"): ("dynamic8", "weights8"),
    ("torch_layers", "gru"): ("dynamic8", "weights8"),
    ("torch_layers", "speech"): ("dynamic8", "weights8"),
    ("torch_language", "smollm"): ("dynamic8", "dynamic4", "blocks32", "hadamard4", "weights8", "static8"),
    ("torch_language", "gemma1"): ("dynamic8", "blocks32"),
    ("torch_language", "gemma3"): ("dynamic8", "blocks32"),
    ("torch_language", "smollm_no_composites"): ("blocks32",),
    ("timm_nets", "mobilenetv3"): ("dynamic8", "static8"),
    ("timm_nets", "efficientnet"): ("dynamic8", "dynamic4", "static8"),
    ("timm_nets", "convnext"): ("dynamic8", "static8"),
    ("timm_nets", "swin"): ("dynamic8", "static8"),
    ("timm_nets", "vit"): ("hadamard4", "blocks32", "static16"),
}

_MAKERS = {"torch_layers": torch_layers, "torch_language": torch_language, "timm_nets": timm_nets}


@cache
def _base(module: str, name: str) -> Case:
    return dict(_MAKERS[module].models())[f"{module}-{name}"]()


def _make(name: str, module: str, base: str, recipe: str) -> Case:
    return quantize(name, _base(module, base), recipe)


def models() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Each net by each of its recipes."""
    for (module, base), recipes in QUANTIZED.items():
        for recipe in recipes:
            name = f"quantized-{module}-{base}-{recipe}"
            yield name, partial(_make, name, module, base, recipe)
