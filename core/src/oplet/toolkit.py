"""What the core offers to authors of tools and commands, beside the names of `oplet` itself: what `oplet_tools` is made of.

It is for programs that look into models and interpreters, change models, or manage plugins: commands, test kits, packagers. Programs that run
models need `oplet` alone, and kernels `oplet.kernels`.

These names may change with every minor release, and the changelog tells what did: a package that uses them requires the one that it was
tested with, as in `oplet-core>=0.1,<0.2`.

Examples:
    >>> from oplet.toolkit import SubgraphRunner, entry_subgraphs
"""

from __future__ import annotations

#: The module of each name, by what it is for. Names are imported when they are first used, as those of `oplet` are: a command imports what it
#: uses and no more. `python -m scripts.stubs` writes `toolkit.pyi` for type checkers from this table.
_HOMES = {
    # Files: safely read, safely written.
    "FOLDER_VARIABLE": "oplet.model.files.cache_folder",
    "OwnFolder": "oplet.model.files.cache_folder",
    "TEXT_BYTES": "oplet.model.files.regular_files",
    "atomic_write": "oplet.model.files.atomic_write",
    "cache_folder": "oplet.model.files.cache_folder",
    "check_target": "oplet.model.files.atomic_write",
    "is_special": "oplet.model.files.atomic_write",
    "map_file": "oplet.model.reading",
    "open_file": "oplet.model.files.regular_files",
    "permissions": "oplet.model.files.atomic_write",
    "read_file": "oplet.model.files.regular_files",
    # Models: their tables, checked and walked through.
    "CONTROL_DEPENDENCIES": "oplet.model.control_dependencies",
    "bytes_needed": "oplet.ops.strings",
    "decode_control_dependencies": "oplet.model.control_dependencies",
    "entry_subgraphs": "oplet.model.reachability",
    "made_tensors": "oplet.model.reachability",
    "named_subgraphs": "oplet.model.reachability",
    "reachable_subgraphs": "oplet.model.reachability",
    "subgraph_fields": "oplet.model.reachability",
    "verify": "oplet.model.verify.verifier",
    # Building models: what is given to a builder, checked by the functions of a module.
    "arguments": "oplet.model.builders",
    "misspelt_operator": "oplet.model.builders.operator_options",
    "options_class": "oplet.model.builders.operator_options",
    # Values and types.
    "PACKED_BITS": "oplet.ops.strings",
    "bytes_of": "oplet.ops.serving.work",
    "numpy_dtype": "oplet.ops.tensor",
    "quantization_details": "oplet.runtime.descriptions",
    "read_strings": "oplet.ops.strings",
    "string_array": "oplet.ops.strings",
    "tensor_type": "oplet.ops.tensor",
    "unpack": "oplet.runtime.loading",
    # Ops: what serves them.
    "ChainOpResolver": "oplet.ops.serving.resolver",
    "EnsureError": "oplet.ops.ensure",
    "MergedResolver": "oplet.plugins.merged_resolver",
    "Op": "oplet.ops.serving.registration",
    "ResolverEntry": "oplet.ops.serving.registration",
    "Thunk": "oplet.ops.node",
    "op_key": "oplet.ops.serving.registration",
    "op_label": "oplet.ops.serving.registration",
    # Delegates: as command lines name them, and as their kernels run what they claimed.
    "AUTO": "oplet.plugins.engine_choice",
    "LibraryEntry": "oplet.delegates.registry",
    "is_auto": "oplet.plugins.engine_choice",
    "prepare_claimed": "oplet.access",
    "resize_now": "oplet.access",
    # Plugins: what is installed, what is preferred, and what to install.
    "API_VERSION": "oplet.plugins.plugin",
    "BUILTIN_OPS": "oplet.plugins.known_packages",
    "CommandEntry": "oplet.plugins.commands",
    "GROUP": "oplet.plugins.manager",
    "Operators": "oplet.plugins.plugin",
    "PluginInfo": "oplet.plugins.plugin",
    "Preference": "oplet.plugins.selection",
    "default_manager": "oplet.plugins.manager",
    "family_distribution": "oplet.plugins.known_packages",
    "install_command": "oplet.plugins.install_commands",
    "install_first": "oplet.plugins.install_commands",
    "known_command": "oplet.plugins.known_packages",
    "known_distribution": "oplet.plugins.known_packages",
    "manager_of": "oplet.runtime.loading",
    "normalised": "oplet.plugins.selection",
    # Running: what an interpreter has inside, and what it did.
    "Event": "oplet.runtime.describe.profiler",
    "NodeReport": "oplet.runtime.describe.explain",
    "Subgraph": "oplet.runtime.subgraph",
    "SubgraphRunner": "oplet.access",
    "ensure_readable": "oplet.runtime.memory.values",
    "idle_decompositions": "oplet.runtime.delegation.decompositions",
    "inline_composites": "oplet.access",
    "node_error": "oplet.runtime.describe.node_errors",
    "single_threaded_blas": "oplet.runtime.blas",
    "unshare_plan": "oplet.access",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'oplet.toolkit' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(home)
    value = getattr(module, name, None) or importlib.import_module(f"{home}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
