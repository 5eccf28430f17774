"""The contract of ops catches a generated kernel, finished as the tutorial says, that is slightly wrong, in each of these ways."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.places import ROOT

from oplet import MutableOpResolver
from oplet_testing import OpContract, Spec, first_failure, one_op_model
from oplet_tools.scaffolding.scaffold import Names, new_op

TUTORIAL = ROOT / "docs" / "tutorial.md"
FINISHED = ("FINISHED = False", "FINISHED = True")


class Kernel(NamedTuple):
    """A generated package, and where its kernel's source can be spoilt.

    Attributes:
        name: the op.
        function: numpy's function of the same values.
        shape: the statement that sizes the output.
        count: the check of the number of inputs.
        types: the check of the types.
        versions: what registers the versions, and the same with more of them.
    """

    name: str
    function: str
    shape: str
    count: str
    types: str
    versions: tuple[str, str]

    @property
    def builtin(self) -> bool:
        return self.name.isupper()

    @property
    def compute(self) -> str:
        """The line that computes."""
        return f"        np.{self.function}(x, y)\n"


SINH = Kernel(
    "Sinh",
    "sinh",
    "    context.resize_tensor(y, x.shape)\n",
    "    ensure_operands(node, 1)\n",
    "    ensure_type(x, TensorType.FLOAT32)\n",
    (':REGISTRATION")', ':REGISTRATION", 1, 9)'),
)
EXP = Kernel(
    "EXP",
    "exp",
    "    context.resize_tensor(node.outputs[0], node.inputs[0].shape)\n",
    '    if len(node.inputs) != 1:\n        decline(f"it takes one input, this node has {len(node.inputs)}.")\n'
    "    ensure_operands(node, 1)\n",
    "inputs=[[TensorType.FLOAT32]], outputs=[[TensorType.FLOAT32]]",
    ("FIRST_VERSION, LAST_VERSION = 1, 1", "FIRST_VERSION, LAST_VERSION = 1, 9"),
)
SPOT = {"COMPUTE": "compute", "SHAPE": "shape", "COUNT": "count", "TYPES": "types"}
#: By name: what is replaced in the kernel, and with what; F is numpy's function.
MUTANTS: dict[str, tuple[str, ...]] = {
    "writes nothing": ("COMPUTE", "        pass\n"),
    "writes the first element only": ("COMPUTE", "        y[:1, :1] = F(x[:1, :1])\n"),
    "leaves out the last row": ("COMPUTE", "        F(x[:-1], y[:-1])\n"),
    "leaves out every second column": ("COMPUTE", "        F(x[:, ::2], y[:, ::2])\n"),
    "adds to what is there": ("COMPUTE", "        np.add(y, F(x), out=y)\n"),
    "writes into its input": ("COMPUTE", "        F(x, x)\n        y[...] = x\n"),
    "replaces the output": ("COMPUTE", "        node.outputs[0].data = F(x)\n"),
    "copies its input, as it was generated": ("COMPUTE", "        np.copyto(y, x)\n"),
    "loses the sign": ("COMPUTE", "        F(np.abs(x), y)\n"),
    "computes in half precision": ("COMPUTE", "        y[...] = F(x.astype(np.float16))\n"),
    "writes rows in the reverse order": ("COMPUTE", "        F(x[::-1], y)\n"),
    "remembers the first answer": ("COMPUTE", "        y[...] = node.cached(x.shape, (), lambda: F(x))\n"),
    "remembers the first arrays": ("COMPUTE", "        F(*node.cached(x.shape, (), lambda: (x, y)))\n"),
    "computes where it binds": ("COMPUTE", "        y[...] = now\n", "    def run()", "    now = F(x)\n\n    def run()"),
    "keeps a diary": ("COMPUTE", "        F(x, y)\n        DIARY.append(y.copy())\n"),
    "counts its runs": ("COMPUTE", "        F(x, y)\n        DIARY.append(0)\n        np.add(y, len(DIARY), out=y)\n"),
    "shares scratch between interpreters": (
        "COMPUTE",
        "        shared = SCRATCH.setdefault(x.shape, np.zeros_like(x))\n        np.copyto(shared, x)\n        import time\n\n"
        "        time.sleep(0.001)\n        F(shared, y)\n",
    ),
    "never resizes": ("SHAPE", "    pass\n"),
    "gives the transposed shape": ("SHAPE", "    context.resize_tensor(node.outputs[0], node.inputs[0].shape[::-1])\n"),
    "gives a shape of its own": ("SHAPE", "    context.resize_tensor(node.outputs[0], (2, 3))\n"),
    "offers its input, and reads it after it has written": (
        "SHAPE",
        "    context.resize_tensor(node.outputs[0], node.inputs[0].shape)\n    node.in_place = node.inputs\n",
        "COMPUTE",
        "        np.negative(x, y)\n        F(x, y)\n",
    ),
    "stumbles over no elements": (
        "SHAPE",
        "    context.resize_tensor(node.outputs[0], node.inputs[0].shape)\n    1 // node.inputs[0].size\n",
    ),
    "takes the operands for granted": ("COUNT", ""),
    "takes every type": ("TYPES", ""),
    "serves versions that it does not know": ("VERSIONS",),
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`package(kernel, changes)`: the resolver that knows the package alone."""
    made: list[str] = []

    def build(kernel: Kernel, changes: tuple[str, ...] = ()) -> MutableOpResolver:
        names = Names.of(kernel.name, "op")
        folder = new_op(kernel.name, tmp_path / "package", builtin=kernel.builtin) / "src" / names.module
        source = (folder / "kernel.py").read_text()
        if kernel.builtin:
            assert source.count("        np.copyto(y, x)\n") == 1
            source = source.replace("        np.copyto(y, x)\n", kernel.compute)
        else:
            [source] = re.findall(r"```python\n# src/acme_sinh/kernel.py\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)
        replaced = [FINISHED]
        if changes == ("VERSIONS",):
            replaced.append(kernel.versions)
            changes = ()
        for spot, new in zip(changes[::2], changes[1::2]):
            old = getattr(kernel, SPOT[spot]) if spot in SPOT else spot
            assert source.count(old) == 1, old
            source = source.replace(old, re.sub(r"\bF\(", f"np.{kernel.function}(", new))
        (folder / "kernel.py").write_text(
            source.replace("import numpy as np\n", "import numpy as np\n\nDIARY, SCRATCH = [], {}\n")
        )
        hook = (folder / "__init__.py").read_text()
        for old, new in replaced:
            assert hook.count(old) == 1, old
            hook = hook.replace(old, new)
        (folder / "__init__.py").write_text(hook)
        monkeypatch.syspath_prepend(folder.parent)
        importlib.invalidate_caches()
        made.append(names.module)
        module: ModuleType = importlib.import_module(names.module)
        resolver = MutableOpResolver()
        module.register_ops(resolver)
        return resolver

    yield build
    for name in [each for each in sys.modules if each.partition(".")[0] in made]:
        del sys.modules[name]


def contract(kernel: Kernel, resolver: MutableOpResolver) -> OpContract:
    x = Spec("float32", [2, 3])
    about = {
        "model": one_op_model(kernel.name, [x], [x]),
        "inputs": [np.array([[-2, -1, 0], [0.5, 3, 4]], np.float32)],
        "reference": staticmethod(getattr(np, kernel.function)),
        "max_version": 1,
        "op_resolver": resolver,
        "plugins": [],
    }
    return type("Contract", (OpContract,), about)()


@pytest.mark.parametrize("kernel", [SINH, EXP], ids=lambda kernel: kernel.name)
def test_the_finished_kernel_keeps_the_contract(kernel: Kernel, package: Any) -> None:
    assert first_failure(contract(kernel, package(kernel))) == ""


@pytest.mark.sweep
@pytest.mark.parametrize("changes", MUTANTS.values(), ids=MUTANTS)
@pytest.mark.parametrize("kernel", [SINH, EXP], ids=lambda kernel: kernel.name)
def test_the_contract_catches_a_generated_kernel_that_is_slightly_wrong(
    kernel: Kernel, changes: tuple[str, ...], package: Any
) -> None:
    assert first_failure(contract(kernel, package(kernel, changes)))
