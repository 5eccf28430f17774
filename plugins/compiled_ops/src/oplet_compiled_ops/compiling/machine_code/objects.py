"""Loading of object files where images do not work: LLVM's own JIT linker. Needs llvmlite, but not numba."""

from __future__ import annotations

from typing import Any

from oplet_compiled_ops.compiling.machine_code.image import ImageError

__all__ = ["loaded_object"]

_kept: list[Any] = []


def loaded_object(data: bytes, entries: tuple[str, ...]) -> dict[str, int]:
    """Load an ELF object file with LLVM's JIT linker; return the addresses of those of the `entries` that it defines.

    Raises:
        ImageError: LLVM refuses the file, or is not installed.
    """
    try:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
        found = {name: engine.get_function_address(name) for name in entries}
    except (ImportError, RuntimeError, OSError) as error:
        raise ImageError(f"LLVM does not load it: {error}") from error
    _kept.append(engine)  # the machine code is freed with it
    return {name: address for name, address in found.items() if address}
