"""LiteRT's interpreter, to compare answers with."""

from __future__ import annotations

import functools
import importlib
import unittest
from collections.abc import Callable
from typing import Any

from oplet.errors import ModelError

__all__ = ["litert_interpreter"]

_MODULE = "ai_edge_litert.interpreter"


def litert_interpreter(kernels: str | None = None) -> Callable[..., Any]:
    """Return LiteRT's Interpreter class (of ai-edge-litert); where it is not installed, the test that asks for it is skipped.

    Args:
        kernels: the name of an OpResolverType that its constructor is given: "BUILTIN_REF" for the reference kernels,
            "BUILTIN_WITHOUT_DEFAULT_DELEGATES" for the optimized ones without XNNPACK, "BUILTIN" for these with it; None
            for LiteRT's choice.

    Raises:
        unittest.SkipTest: LiteRT is not installed; pytest and unittest skip the test, or the module that raises it.
        ModelError: there is no such OpResolverType.

    Examples:
        >>> import numpy as np
        >>> from oplet_testing import Spec, litert_interpreter, one_op_model, run_op
        >>> model = one_op_model("ABS", [Spec("float32", [2])], [Spec("float32", [2])])
        >>> x = np.array([-1, 2], np.float32)
        >>> theirs = run_op(model, x, interpreter=litert_interpreter("BUILTIN_REF"))  # doctest: +SKIP
        >>> np.testing.assert_allclose(run_op(model, x)[0], theirs[0])  # doctest: +SKIP
    """
    try:
        litert = importlib.import_module(_MODULE)
    except ImportError as error:
        raise unittest.SkipTest(f"{_MODULE} cannot be imported; pip install ai-edge-litert to compare with LiteRT.") from error
    if kernels is None:
        return litert.Interpreter  # type: ignore[no-any-return]
    kinds = {each.name: each for each in litert.OpResolverType}
    if kernels not in kinds:
        raise ModelError(f"LiteRT has no OpResolverType {kernels!r}; it has {', '.join(kinds)}.")
    return functools.partial(litert.Interpreter, experimental_op_resolver_type=kinds[kernels])
