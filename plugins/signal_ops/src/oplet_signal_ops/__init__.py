"""The custom operators of tflite-micro, in numpy: those of its audio front end, and the one that unpacks compressed tensors.

Each is one module of `oplet_signal_ops.ops`, which is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: The module of each operator; all are of version 1.
OPS: dict[str, str] = {
    "SignalDelay": "delay",
    "SignalEnergy": "energy",
    "SignalFftAutoScale": "fft_auto_scale",
    "SignalFilterBank": "filter_bank",
    "SignalFilterBankLog": "filter_bank_log",
    "SignalFilterBankSpectralSubtraction": "filter_bank_spectral_subtraction",
    "SignalFilterBankSquareRoot": "filter_bank_square_root",
    "SignalFramer": "framer",
    "SignalIrfft": "irfft",
    "SignalOverlapAdd": "overlap_add",
    "SignalPCAN": "pcan",
    "SignalRfft": "rfft",
    "SignalStacker": "stacker",
    "SignalWindow": "window",
    "TFLM_DECODE": "decode",
}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators with the resolver, under their custom-op names in models."""
    for name, module in OPS.items():
        resolver.add_custom(name, f"{__name__}.ops.{module}:REGISTRATION")
