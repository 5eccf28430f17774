"""What commands print in terminals of several widths, kept as files in plugins/tools/tests/commands/terminal.

usage: python -m plugins.tools.tests.commands.terminal_outputs, to write the files anew
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
from tests.places import ROOT

from oplet.builder import ModelBuilder
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Conv2DOptions, Pool2DOptions
from oplet_tools.processes import run_python

__all__ = ["COMMANDS", "FOLDER", "GROUPS", "MODES", "PLUGIN_COMMANDS", "printed", "versions", "wanted"]

FOLDER = Path(__file__).parent / "terminal"

#: The variables of each kind of terminal; a pipe has none.
MODES = {
    "80": {"FORCE_COLOR": "1", "COLUMNS": "80"},
    "120": {"FORCE_COLOR": "1", "COLUMNS": "120"},
    "pipe": {},
    "no-color": {"TTY_COMPATIBLE": "1", "NO_COLOR": "1", "COLUMNS": "80"},
}

_INT8, _FLOAT = "examples/digits/digits_int8.tflite", "examples/digits/digits_float32.tflite"
_EXACT = "exact.tflite"
_QUICK = "--num-runs 3 --min-secs 0 --warmup-min-secs 0"

#: Commands whose output is the same each time, on every processor.
COMMANDS = {
    "help": "--help",
    "inspect": f"inspect {_INT8}",
    "inspect-all": f"inspect {_INT8} --nodes --tensors",
    "inspect-op": f"inspect {_INT8} --op CONV_2D",
    "inspect-wide": f"inspect {_INT8} --tensors --wide",
    "doctor": f"doctor {_INT8}",
    "doctor-custom": "doctor examples/atan/atan.tflite",
    "versions": f"versions {_INT8} --nodes",
    "versions-against": f"versions {_INT8} --against 1.10.0",
    "plugins": "plugins",
    "partition": f"partition {_FLOAT} --delegate example",
    "compare": f"compare {_EXACT} -i whole.npz --delegate example --layers",
    "compare-with": f"compare {_EXACT} -i whole.npz --with wanted.npz",
    "select": f"select {_INT8} examples/atan/atan.tflite",
    "run": f"run {_INT8} -i examples/digits/pictures/7.png --top 3 --labels examples/digits/labels.txt",
    "error": "run examples/digits/nothing.tflite",
    "explore": f"explore {_INT8} -o digits.html",
    "benchmark": f"benchmark {_FLOAT} {_QUICK} --profile-html profile.html",
    "benchmark-all": f"benchmark {_FLOAT} {_QUICK} --run-order --delegate example --roofline --wide",
    "benchmark-roofline": f"benchmark {_FLOAT} {_QUICK} --roofline --top 3",
    "tune": f"tune {_INT8}",
    "rewrite": f"rewrite {_INT8} -o rewritten.tflite",
    "build": "build examples/atan/atan.tflite --name cut -o dist --no-timing",
    "new-op": "new-op Square",
    "new-delegate": "new-delegate mine",
    "behind": "behind program.py",
}
COMMANDS |= {
    f"{name}-help": f"{name} --help"
    for name in (
        "run",
        "compare",
        "partition",
        "explore",
        "benchmark",
        "tune",
        "inspect",
        "versions",
        "rewrite",
        "select",
        "build",
        "doctor",
        "plugins",
        "new-op",
        "new-delegate",
        "behind",
    )
}

#: Commands that packages add, whose output is the same each time.
PLUGIN_COMMANDS = {
    "plugins-commands": "--help",
    "native-help": "native --help",
    "native-new-op-help": "native new-op --help",
    "native-cflags-help": "native cflags --help",
    "native-new-op": "native new-op Cube",
    "chat-help": "chat --help",
    "serve-help": "serve --help",
    "serve-check": f"serve {_INT8} {_FLOAT} --check",
}

#: The commands, by the plugins that there are for them.
GROUPS = {"builtin_ops,example_delegate,atan_op,build": COMMANDS, "builtin_ops,native_ops,serve,lm,build": PLUGIN_COMMANDS}

#: A program that was written for LiteRT.
_BEHIND = f"""
from tflite_runtime.interpreter import Interpreter
interpreter = Interpreter("{_INT8}")
interpreter.allocate_tensors()
interpreter.invoke()
print(interpreter.get_output_details()[0]["shape"])
"""

#: Runs all commands in one process, in one folder and with its variables after the other, and prints what each printed, as JSON.
_PROGRAM = """
import contextlib, io, json, os, sys
variables, folders, commands, root = json.loads(sys.argv[1])
os.environ.pop("OPLET_PREFER", None)
os.environ.update(variables)
sys.path.append(root)
from plugins.tools.tests.commands.fixed_measurements import fix_measurements
fix_measurements()
from oplet_tools.cli.main import main
found = {}
for folder, variables in folders.items():
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        os.environ.pop(name, None)
    os.environ.update(variables)
    os.chdir(folder)
    found[os.path.basename(folder)] = texts = {}
    for name, arguments in commands.items():
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(arguments)
            except SystemExit as exit:
                if isinstance(exit.code, str):
                    err.write(exit.code + chr(10))
        texts[name] = [out.getvalue(), err.getvalue()]
print(json.dumps(found))
"""


@cache
def printed(plugins: str) -> dict[str, dict[str, str]]:
    """What each command of a group prints on both streams, by mode, with the plugins that the files are of."""
    variables = {"OPLET_PLUGINS": plugins, "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    commands = {name: shlex.split(command) for name, command in GROUPS[plugins].items()}
    with tempfile.TemporaryDirectory() as place:
        folders = {Path(place, mode): chosen for mode, chosen in MODES.items()}
        for folder in folders:
            folder.mkdir()
            (folder / "examples").symlink_to(ROOT / "examples")
            _write_exact(folder)
            (folder / "program.py").write_text(_BEHIND)
        job = json.dumps([variables, {str(folder): chosen for folder, chosen in folders.items()}, commands, str(ROOT)])
        done = run_python(["-c", _PROGRAM, job], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    return {mode: {name: _kept(*streams) for name, streams in texts.items()} for mode, texts in found.items()}


def _kept(out: str, err: str) -> str:
    # Plugins that are installed besides are listed as blocked.
    out = "".join(line for line in out.splitlines(True) if "blocked" not in line and "OPLET_PLUGINS" not in line)
    # Progress is drawn over and over.
    err = re.sub(r"\x1b\[\?25.*\x1b\[\?25h(\r|\x1b\[1A|\x1b\[2K)*", "", err, flags=re.DOTALL)
    # What a wheel holds, of kernels that change.
    out = re.sub(r"^\d+ modules of (.*), \d+ bytes$", r"9 modules of \1, 9999 bytes", out, flags=re.MULTILINE)
    return out + (f"--- standard error\n{err}" if err.strip() else "")


def _write_exact(folder: Path) -> None:
    """Write a model with an input and outputs to compare.

    All its values are small whole numbers: errors, and the places of the largest, depend on no processor's order of summation.
    """
    generator = np.random.default_rng(0)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    image = graph.add_tensor("serving_default_image:0", "float32", [1, 8, 8, 1])
    conv = graph.add_tensor("functional_1/conv2d_1/Relu", "float32", [1, 8, 8, 16])
    pool = graph.add_tensor("functional_1/max_pooling2d_1", "float32", [1, 4, 4, 16])
    output = graph.add_tensor("StatefulPartitionedCall_1:0", "float32", [1, 4, 4, 4])
    for data, result, channels in ((image, conv, 16), (pool, output, 4)):
        shape = [channels, 3, 3, 1 if data == image else 16]
        weights = graph.add_tensor(f"weights/{channels}", "float32", shape, data=generator.integers(-2, 3, shape))
        bias = graph.add_tensor(f"bias/{channels}", "float32", [channels], data=generator.integers(-9, 9, channels))
        options = Conv2DOptions(stride_w=1, stride_h=1, fused_activation_function=ActivationFunctionType.RELU)
        graph.add_operator("CONV_2D", [data, weights, bias], [result], options)
        if data == image:
            halves = Pool2DOptions(padding=Padding.VALID, stride_w=2, stride_h=2, filter_width=2, filter_height=2)
            graph.add_operator("MAX_POOL_2D", [conv], [pool], halves)
    graph.set_inputs(image)
    graph.set_outputs(output)
    builder.add_signature("serving_default", {"image": image}, {"features": output})
    builder.save(folder / _EXACT)
    np.savez(folder / "whole.npz", image=generator.integers(0, 9, (1, 8, 8, 1)).astype(np.float32))
    np.savez(folder / "wanted.npz", features=np.full((1, 4, 4, 4), 40.5, np.float32))


def wanted(name: str, mode: str) -> Path:
    """The file with what a command prints."""
    return FOLDER / f"{name}.{mode}.txt"


def versions() -> str:
    """The versions of what lays tables and help out."""
    return "".join(f"{name} {version(name)}\n" for name in ("rich", "typer"))


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for plugins in GROUPS:
        for mode, texts in printed(plugins).items():
            for name, text in texts.items():
                wanted(name, mode).write_text(text, "utf-8")
    (FOLDER / "versions.txt").write_text(versions())


if __name__ == "__main__":
    main()
