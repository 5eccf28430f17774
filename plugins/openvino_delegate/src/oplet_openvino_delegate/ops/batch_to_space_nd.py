"""BATCH_TO_SPACE_ND."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.blocks import block_translator

TRANSLATOR = block_translator(ov.batch_to_space, "crops")
