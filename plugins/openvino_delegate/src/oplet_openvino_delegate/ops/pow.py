"""POW with integral constant exponents, for which powers of negative values are not NaN (activations treat NaN differently)."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.elementwise import broadcasting
from oplet_openvino_delegate.translators import Translator

_BROADCAST = broadcasting(ov.power, newest=1)


def refuses(node: Node) -> str:
    """Return why the delegate leaves the POW node to other kernels; "" if it translates it."""
    exponents = node.inputs[1]
    whole = bool((exponents.data == np.rint(exponents.data)).all())
    return _BROADCAST.refuses(node) if whole else f"the exponents {exponents} are not whole: there may be NaN"


TRANSLATOR: Translator = _BROADCAST._replace(refuses=refuses, needs=(1,))
