"""The plans of layers with integer weights, for integer and for float activations, and the scales of blocks of weights."""

from __future__ import annotations

from oplet_builtin_ops.layers.blocks import block_scales
from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer

__all__ = ["HybridLayer", "QuantizedLayer", "block_scales"]
