"""Environment: what several CompiledModels share. LiteRT looks for vendor libraries by it; oplet finds delegates among installed packages."""

from __future__ import annotations

import dataclasses
import os
from types import TracebackType

__all__ = ["Environment", "EnvironmentOptions"]


@dataclasses.dataclass(frozen=True)
class EnvironmentOptions:
    """Where LiteRT looks for libraries, accepted for compatibility.

    Attributes:
        runtime_path: the folder of the runtime's library.
        compiler_plugin_path: the folder of vendors' compilers.
        dispatch_library_path: the folder of vendors' runtimes.
        compiler_cache_dir: the folder for what vendors' compilers make.
    """

    runtime_path: str | None = None
    compiler_plugin_path: str = ""
    dispatch_library_path: str = ""
    compiler_cache_dir: str = ""


class Environment:
    """LiteRT's environment, accepted for compatibility; a model keeps its environment alive, even one that was closed.

    Args:
        capsule: the object that the property `capsule` returns; `Environment.create` makes one.
        options: the environment's options.

    Examples:
        >>> with Environment.create() as environment:
        ...     model = CompiledModel.from_file("model.tflite", environment=environment)  # doctest: +SKIP
    """

    def __init__(self, capsule: object, options: EnvironmentOptions) -> None:
        self._capsule: object | None = capsule
        self._options = options

    def __enter__(self) -> Environment:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the environment: no further model can be made with it."""
        self._capsule = None

    @classmethod
    def create(
        cls,
        options: EnvironmentOptions | str | None = None,
        *,
        runtime_path: str | None = None,
        compiler_plugin_path: str = "",
        dispatch_library_path: str = "",
        compiler_cache_dir: str = "",
    ) -> Environment:
        """Return an environment.

        Args:
            options: the environment's options, or the runtime's folder; not together with the other arguments.
            runtime_path: the folder of the runtime's library.
            compiler_plugin_path: the folder of vendors' compilers.
            dispatch_library_path: the folder of vendors' runtimes.
            compiler_cache_dir: the folder for what vendors' compilers make.

        Raises:
            ValueError: options are given together with other arguments.
        """
        if isinstance(options, str):
            if runtime_path is not None:
                raise ValueError("runtime_path was provided twice.")
            runtime_path, options = options, None
        shortcuts = (compiler_plugin_path, dispatch_library_path, compiler_cache_dir)
        if options is None:
            options = EnvironmentOptions(runtime_path, *shortcuts)
        elif runtime_path is not None or any(shortcuts):
            raise ValueError("Pass either options or environment path shortcuts.")
        found = options.runtime_path or os.path.dirname(os.path.abspath(__file__))
        return cls(object(), dataclasses.replace(options, runtime_path=found))

    @property
    def options(self) -> EnvironmentOptions:
        """The options that the environment was made with."""
        return self._options

    @property
    def capsule(self) -> object:
        """The opaque handle of the environment.

        Raises:
            ValueError: the environment was closed.
        """
        if self._capsule is None:
            raise ValueError("Environment is no longer valid")
        return self._capsule
