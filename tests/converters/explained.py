"""The models that are not equal to one of LiteRT's ways, with the rank that they have and why; docs/numerics.md says more."""

from __future__ import annotations

__all__ = ["EXPLAINED"]

_BLOCKS = "LiteRT's own kernels give zeros for blocks of 2 bits, and XNNPACK does not take them: oplet multiplies what the weights stand for"

_STALE = (
    "the quantizer leaves signatures whose outputs are no outputs of the graph, and LiteRT gives what lies in their memory by then; "
    "where it keeps all tensors it gives what oplet gives, see test_stale_signatures.py"
)

_FOLDED = (
    "oplet works the shapes out before the delegate is asked, so that XNNPACK takes layers which LiteRT alone, to which their output's "
    "shape is not known, runs in kernels of its own; XNNPACK rounds once where they round twice"
)

#: By name: the engines, or "" for all of them; the rank; the reason.
EXPLAINED: dict[str, tuple[str, str, str]] = {
    "quantized-torch_language-smollm-static8": ("", "wrong", _STALE),
    "quantized-torch_layers-mlp-blocks32_2bit": ("numpy compiled openvino", "wrong", _BLOCKS),
    **{
        f"keras-{name}": ("litert", "near", _FOLDED)
        for name in (
            "conv_transpose-int8",
            "conv_transpose-int8io",
            "conv_transpose-uint8io",
            "upsampling-int8io",
            "upsampling-uint8io",
        )
    },
    "keras-activations-float16": (
        "openvino",
        "near",
        "OpenVINO recognizes RELU6(x + 3) times a sixth, here rounded to float16, as the hard sigmoid and divides by six",
    ),
    "keras-activations-int16x8": (
        "numpy compiled openvino",
        "near",
        "QUANTIZE of a value between two steps divides as the reference kernel does; the net has an ELU, which that set lacks",
    ),
}
