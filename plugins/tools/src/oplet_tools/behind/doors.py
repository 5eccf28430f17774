"""What oplet makes of the modules of LiteRT's packages that programs import: answered, refused with a sentence, or LiteRT's own.

`ai_edge_litert.interpreter` and the like are `import_hooks.INTERCEPTED`; here is the rest.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from oplet.toolkit import install_command

__all__ = ["COMPANIONS", "FALLBACKS", "PACKAGES", "STAND_INS", "VERSIONS", "answer_of", "refusal_of"]

#: LiteRT's packages, whose modules are answered, refused or told.
PACKAGES = ("ai_edge_litert", "tflite_runtime")

#: The versions whose interface oplet answers, by package; what `__version__` and look-ups of distributions say where a package is missing.
VERSIONS = {"ai_edge_litert": "2.3.0", "tflite_runtime": "2.14.0"}

#: Modules that oplet answers with one of its own.
STAND_INS = {
    "ai_edge_litert.metrics_interface": "oplet_tools.behind.stand_ins.metrics",
    "ai_edge_litert.metrics_portable": "oplet_tools.behind.stand_ins.metrics",
    "ai_edge_litert.tools.benchmark_litert_model": "oplet_tools.behind.stand_ins.tools.benchmark_litert_model",
    "ai_edge_litert.tools.mmap_utils": "oplet_tools.behind.stand_ins.tools.mmap_utils",
    "ai_edge_litert._pywrap_tfl_calibration": "oplet_tools.behind.stand_ins.calibration",
    "ai_edge_litert._pywrap_analyzer_wrapper": "oplet_tools.behind.stand_ins.analyzer",
    "tflite_runtime.metrics_interface": "oplet_tools.behind.stand_ins.metrics",
    "tflite_runtime.metrics_portable": "oplet_tools.behind.stand_ins.metrics",
}

#: Modules that oplet answers with one of its own where they are not installed; LiteRT's own run no models.
FALLBACKS = {
    "ai_edge_litert.schema_py_generated": "oplet_tools.behind.stand_ins.schema_py_generated",
    "ai_edge_litert.tools.flatbuffer_utils": "oplet_tools.behind.stand_ins.tools.flatbuffer_utils",
    "tensorflow.lite.python.schema_py_generated": "oplet_tools.behind.stand_ins.schema_py_generated",
}

#: Modules of LiteRT's newer API, which the package oplet-compiled-model answers under the same names: `oplet.tensor_buffer` and so on.
COMPANIONS = tuple(
    f"ai_edge_litert.{name}"
    for name in (
        "compiled_model",
        "cpu_kernel_mode",
        "cpu_options",
        "environment",
        "gpu_options",
        "hardware_accelerator",
        "intel_openvino_options",
        "option_utils",
        "options",
        "qualcomm_options",
        "tensor_buffer",
    )
)

#: Modules that oplet does not answer though LiteRT is installed, as they would run models in LiteRT itself or take its C++ objects: why, and
#: what to do.
_REFUSED = {
    "ai_edge_litert._pywrap_litert_interpreter_wrapper": "it is LiteRT's C++ interpreter; use ai_edge_litert.interpreter, which oplet answers",
    "ai_edge_litert._pywrap_tensorflow_lite_calibration_wrapper": "it runs models in LiteRT's C++ interpreter; calibrate without `oplet behind`",
    "ai_edge_litert.pywrap_genai_ops": "it registers C++ kernels with LiteRT's C++ interpreter; oplet's kernels come as packages, which "
    "`oplet doctor MODEL` names",
    "pycoral": "its native part takes LiteRT's C++ interpreter; make the interpreter with tflite_runtime.interpreter, which oplet answers, and "
    "give it load_delegate('libedgetpu.so.1'), which oplet-native-ops loads, or no delegate for the model without `_edgetpu`",
}

#: What programs take of these modules, in the advice where LiteRT is not installed.
_DISTRIBUTIONS = {"ai_edge_litert": "ai-edge-litert", "tflite_runtime": "tflite-runtime"}


def answer_of(name: str) -> ModuleType | None:
    """Return the oplet module that replaces a LiteRT module; None if there is none, or if the oplet package that has it is not installed."""
    if stand_in := STAND_INS.get(name) or FALLBACKS.get(name):
        return import_module(stand_in)
    if name not in COMPANIONS:
        return None
    companion = f"oplet.{name.rpartition('.')[2]}"
    try:
        return import_module(companion)
    except ModuleNotFoundError as error:
        if error.name not in (companion, "oplet_compiled_model"):
            raise
        return None


def refusal_of(name: str, *, installed: bool, among: bool) -> str:
    """Return the error message for the import of a LiteRT module that oplet does not replace; "" if LiteRT's own module may be imported.

    Args:
        name: the full name of the module.
        installed: whether LiteRT's module is installed.
        among: whether the top-level package is installed, which may lack this module (then Python's own ImportError is right).
    """
    if name in COMPANIONS:
        runs = "would run models in LiteRT itself, and " if installed else ""
        return f"{name} {runs}is answered where oplet-compiled-model is installed: {install_command('oplet-compiled-model')}."
    for refused, why in _REFUSED.items():
        if name == refused or name.startswith(f"{refused}."):
            return f"{name} is not answered by oplet, as {why}."
    package = name.partition(".")[0]
    if not installed and not among and package in _DISTRIBUTIONS:
        return (
            f"{name} is not answered by oplet, and {_DISTRIBUTIONS[package]} is not installed: pip install {_DISTRIBUTIONS[package]} brings it, "
            "and the interpreter stays oplet's."
        )
    return ""
