"""Stand-in for `ai_edge_litert._pywrap_tfl_calibration`, which quantizers import whether they use it or not: it is refused where it is used."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from oplet.errors import OpletError

__all__ = ["InvokeWithCalibration", "Range", "get_memory_usage"]


class Range(NamedTuple):
    """The smallest and the largest value of a tensor."""

    min: float  #: The smallest.
    max: float  #: The largest.


def InvokeWithCalibration(native_handle: Any, subgraph: int = 0) -> NoReturn:
    """Raise an error: calibration would run LiteRT's C++ interpreter, which oplet does not replace.

    Raises:
        OpletError: always.
    """
    raise OpletError(_WHY)


def get_memory_usage() -> NoReturn:
    """Raise an error: the memory use of LiteRT's allocator is not known to oplet.

    Raises:
        OpletError: always.
    """
    raise OpletError(_WHY)


_WHY = (
    "ai_edge_litert._pywrap_tfl_calibration is not answered by oplet, as it reads tensors through the address of LiteRT's C++ interpreter; read "
    "them with Interpreter(experimental_preserve_all_tensors=True) and get_tensor(), which ai-edge-quantizer does unless it is to be "
    "PROFILER_BASED, or run the calibration without `oplet behind`."
)
