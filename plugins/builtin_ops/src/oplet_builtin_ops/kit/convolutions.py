"""The checks of CONV_2D, which a compiled kernel makes in place of the numpy kernel's whole `prepare`, and what they find."""

from __future__ import annotations

from oplet_builtin_ops.layers.checked_convolution import Convolution, check_convolution

__all__ = ["Convolution", "check_convolution"]
