"""The delegate `openvino`: nodes that OpenVINO computes as LiteRT does run in OpenVINO, on CPU, GPU or NPU."""

from __future__ import annotations

from oplet import DelegateRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_delegates(registry: DelegateRegistry) -> None:
    """Register the delegate under the name `openvino`; the delegate and OpenVINO are imported at first use."""
    devices = {kind: {"device": kind.upper()} for kind in ("cpu", "gpu", "npu")}
    registry.add("openvino", f"{__name__}.delegate:OpenVinoDelegate", accelerates=devices)
