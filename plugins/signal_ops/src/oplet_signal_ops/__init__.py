"""The custom operators of tflite-micro, in numpy: those of its audio front end, and the one that unpacks compressed tensors.

Their modules, in `oplet_signal_ops.ops`, are imported when a model needs them.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: The module of each operator, and where a module has several, the constant in it: "module:NAME". All are of version 1.
OPS: dict[str, str] = {
    "SignalDelay": "framing:DELAY",
    "SignalEnergy": "energy",
    "SignalFftAutoScale": "fft:AUTO_SCALE",
    "SignalFilterBank": "filter_banks:BANK",
    "SignalFilterBankLog": "filter_banks:LOG",
    "SignalFilterBankSpectralSubtraction": "filter_banks:SPECTRAL_SUBTRACTION",
    "SignalFilterBankSquareRoot": "filter_banks:SQUARE_ROOT",
    "SignalFramer": "framing:FRAMER",
    "SignalIrfft": "fft:IRFFT",
    "SignalOverlapAdd": "framing:OVERLAP_ADD",
    "SignalPCAN": "pcan",
    "SignalRfft": "fft:RFFT",
    "SignalStacker": "framing:STACKER",
    "SignalWindow": "window",
    "TFLM_DECODE": "decode",
}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators with the resolver, under their custom-op names in models."""
    for name, module in OPS.items():
        resolver.add_custom(name, f"{__name__}.ops.{module}" + ("" if ":" in module else ":REGISTRATION"))
