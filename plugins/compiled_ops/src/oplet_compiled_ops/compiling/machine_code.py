"""Machine code of a kernel for one level of processors, by LLVM's optimizer and assembler: an object file that zig's linker takes."""

from __future__ import annotations

import functools
import re
from typing import Any

import llvmlite.binding as llvm

from oplet_compiled_ops.library.levels import Level

__all__ = ["object_of"]

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
llvm.initialize_native_asmparser()
_HEAD = re.compile(r"^target (?:triple|datalayout) = .*\n", re.MULTILINE)


@functools.lru_cache(maxsize=4)
def _machine(processor: str, features: str, triple: str) -> Any:
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=processor, features=features, opt=3, reloc="pic", codemodel="default")


def object_of(ir: str, level: Level, triple: str) -> bytes:
    """Return the object file of a module's IR for a level and a platform.

    Args:
        ir: the module, as `numba_ir.ir_of` returns it.
        level: the level: which instructions may be used.
        triple: LLVM's name of the platform: the object file's format, and how functions are called.
    """
    machine = _machine(level.processor, level.features, triple)
    module = llvm.parse_assembly(_HEAD.sub("", ir))
    module.triple, module.data_layout = triple, str(machine.target_data)
    # One pipeline: after a first one without vectors, loops would be in forms that the second one does not vectorize.
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization = options.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    module.verify()
    return bytes(machine.emit_object(module))
