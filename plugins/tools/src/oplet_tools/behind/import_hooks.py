"""Import hooks that give programs oplet's interpreter where they import LiteRT's, and what `doors` has for other modules of its packages.

Programs import the interpreter from `tflite_runtime.interpreter`, `ai_edge_litert.interpreter`, `tensorflow.lite` (`tf.lite`) or
`tensorflow.lite.python.interpreter`. Modules of oplet, of its plugins (the litert delegate imports LiteRT), of LiteRT and of TensorFlow
itself still get the installed module. The hooks are finders in `sys.meta_path`; installed packages are not changed.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from oplet_tools.behind.doors import COMPANIONS, FALLBACKS, PACKAGES, STAND_INS, VERSIONS, answer_of, refusal_of

__all__ = ["INTERCEPTED", "ImportHooks", "Imports", "asking_module", "intercept_imports"]


class _AnsweredDistribution(Distribution):
    """A distribution of which there is nothing but its name and version."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: answered by oplet\n"

    def read_text(self, filename: str) -> str | None:
        """Return the metadata; there are no other files."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        """Return a path at which there is nothing."""
        return Path(path)


def distributions(finder: Any, context: Any) -> Iterator[Distribution]:
    """Yield the substitute `importlib.metadata` distribution of a LiteRT package that is looked up by name and that no other finder has.

    Args:
        finder: the meta path finder whose `find_distributions` was called.
        context: the look-up, an `importlib.metadata.DistributionFinder.Context`; without a name (all distributions) nothing is yielded.
    """
    for found in answered_distributions(context):
        for other in sys.meta_path:
            find = getattr(other, "find_distributions", None)
            if other is not finder and find is not None and next(iter(find(context)), None) is not None:
                return
        yield found


def answered_distributions(context: Any) -> Iterator[Distribution]:
    """Yield the substitute distribution of a LiteRT package that is looked up by name, even if another finder has the package."""
    wanted = str(getattr(context, "name", None) or "").lower().replace("-", "_").replace(".", "_")
    if wanted in VERSIONS:
        yield _AnsweredDistribution(wanted.replace("_", "-"), VERSIONS[wanted])


#: Modules that define LiteRT's interpreter.
INTERCEPTED = ("tflite_runtime.interpreter", "ai_edge_litert.interpreter", "tensorflow.lite.python.interpreter")

#: TensorFlow's public modules that re-export LiteRT's names, with these names; they are patched if TensorFlow is installed.
_LITE_NAMES = {
    f"tensorflow.{version}lite{part}": names
    for version in ("_api.v2.", "_api.v2.compat.v1.", "_api.v2.compat.v2.")
    for part, names in (("", ("Interpreter",)), (".experimental", ("OpResolverType", "load_delegate", "Analyzer")))
}

#: TensorFlow's public modules that are made up if TensorFlow is not installed, with their names.
_LITE_STUBS = {
    "tensorflow.lite": ("Interpreter",),
    "tensorflow.lite.experimental": ("OpResolverType", "load_delegate", "Analyzer"),
}

#: Packages between LiteRT's and the modules in them.
_BETWEEN = ("ai_edge_litert.tools",)

#: The modules of Python's import system, and this one.
_IMPORT_SYSTEM = (
    __name__,
    "importlib",
    "importlib._bootstrap",
    "importlib._bootstrap_external",
    "importlib.util",
    "_frozen_importlib",
)

#: Packages that mean the real ones, beside plugins: what compares with LiteRT imports LiteRT.
_OURS = ("oplet", "oplet_build", "oplet_predictor", "oplet_testing", "oplet_tools")


class _InterceptedModule(ModuleType):
    """A stand-in for a module of LiteRT: programs see oplet's objects in it, exempt packages the installed module's names.

    Args:
        names: oplet's objects, by LiteRT's names for them.
        exempt: top-level packages that get the installed module's names.
        finders: the hooks, which find the installed module.
    """

    def __init__(self, name: str, names: Mapping[str, Any], exempt: Collection[str], finders: ImportHooks) -> None:
        super().__init__(name, f"{name}, answered by oplet.")
        self.__dict__["__all__"] = list(names)
        self.__dict__["_parts"] = (names, exempt, finders)

    def __getattr__(self, name: str) -> Any:
        names, exempt, finders = self.__dict__["_parts"]
        asking = sys._getframe(1).f_globals.get("__name__", "")
        if asking.partition(".")[0] in exempt:
            return getattr(finders.installed(self.__name__), name)
        if name in names:
            return names[name]
        raise AttributeError(
            f"oplet answers {self.__name__} with {', '.join(names)}, and has nothing of the name {name!r} there; run the program without "
            "`oplet behind` to use LiteRT's own."
        )


class ImportHooks(MetaPathFinder, Loader):
    """The finder and loader of intercepted modules; it also patches TensorFlow's public modules when they are imported."""

    def __init__(self, names: Mapping[str, Any], exempt: Collection[str], without_tensorflow: bool) -> None:
        self._names = names
        self._without_tensorflow = without_tensorflow
        self._exempt = exempt
        self._installed: dict[str, ModuleType] = {}
        self._patched: list[tuple[ModuleType, dict[str, Any]]] = []
        self.used: dict[str, None] = {}
        self.passed: dict[str, None] = {}
        self.refused: dict[str, str] = {}

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a replaced LiteRT module, of a missing package that encloses one, or of a module to patch; None for others."""
        if fullname in INTERCEPTED:  # its package is installed, or was made up before
            return ModuleSpec(fullname, self, origin="oplet")
        if fullname in _LITE_NAMES:
            spec = self._elsewhere(fullname, path)
            if spec is not None and spec.loader is not None:
                spec.loader = _PatchingLoader(spec.loader, self)
            return spec
        if self._is_litert_s(fullname):
            return self._door(fullname, path)
        around = fullname in _LITE_STUBS or any(door.startswith(f"{fullname}.") for door in INTERCEPTED)
        if fullname.partition(".")[0] == "tensorflow" and not self._without_tensorflow:
            return None
        if (around or fullname in FALLBACKS) and self._elsewhere(fullname, path) is None:
            return ModuleSpec(fullname, self, origin="oplet", is_package=around)
        return None

    def find_distributions(self, context: Any = None) -> Iterator[Distribution]:
        """Yield the substitute distribution of a missing LiteRT package that is looked up by name."""
        return distributions(self, context)

    def _is_litert_s(self, name: str) -> bool:
        package, _, inside = name.partition(".")
        return (package in PACKAGES and bool(inside)) or package == "pycoral"

    def _door(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Return the spec of another module of LiteRT's packages: oplet's answer, or the installed one, which is told.

        Raises:
            ImportError: the program imports it, and it is refused.
        """
        asking, imports = _asking()
        found = self._elsewhere(name, path)
        if asking.partition(".")[0] in self._exempt and name not in STAND_INS:
            return found
        if (name not in FALLBACKS or found is None) and answer_of(name) is not None:
            return ModuleSpec(name, self, origin="oplet")
        if name in _BETWEEN and found is None:
            return ModuleSpec(name, self, origin="oplet", is_package=True)
        refusal = refusal_of(name, installed=found is not None, among=bool(path))
        if not imports:
            return None if refusal else found
        if refusal:
            self.refused[name] = refusal
            raise (ImportError if found is not None else ModuleNotFoundError)(refusal, name=name)
        if found is not None and name not in _BETWEEN:
            self.passed[name] = None
        return found

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Create the module of a spec: an empty package if it encloses a replaced module, else the replaced module."""
        answer = answer_of(spec.name)
        if answer is not None:
            module = ModuleType(spec.name, f"{spec.name}, answered by oplet.")
            # A companion forwards its names: they are in dir(), not in vars().
            told = [name for name in dir(answer) if not name.startswith("__") or name == "__all__"]
            module.__dict__.update({name: getattr(answer, name) for name in told})
            return module
        if spec.submodule_search_locations is None:
            names = {name: value for name, value in self._names.items() if name != "Analyzer"}
            return _InterceptedModule(spec.name, names, self._exempt, self)
        return _EnclosingPackage(spec.name, {n: self._names[n] for n in _LITE_STUBS.get(spec.name, ()) if n in self._names})

    def exec_module(self, module: ModuleType) -> None:
        """Record that the module was imported; there is nothing to run."""
        if not isinstance(module, _EnclosingPackage) or module.__name__ in _LITE_STUBS:
            self.used[module.__name__] = None

    def patch(self, module: ModuleType) -> None:
        """Replace LiteRT's names (such as `Interpreter`) in one of TensorFlow's public modules by oplet's objects."""
        names = _LITE_NAMES[module.__name__]
        self._patched.append((module, {name: vars(module)[name] for name in names if name in vars(module)}))
        vars(module).update((name, self._names[name]) for name in names if name in self._names)

    def undo(self) -> None:
        """Restore LiteRT's names in TensorFlow's modules that were patched."""
        for module, values in self._patched:
            vars(module).update(values)

    def installed(self, name: str) -> ModuleType:
        """Return the installed module of an intercepted name.

        Raises:
            ModuleNotFoundError: the module is not installed.
        """
        if name not in self._installed:
            parent = import_module(name.rpartition(".")[0])
            spec = self._elsewhere(name, list(parent.__path__))
            if spec is None or spec.loader is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            module = self._installed[name] = module_from_spec(spec)
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del self._installed[name]
                raise
        return self._installed[name]

    def _elsewhere(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path)) is not None:
                return spec
        return None


class _EnclosingPackage(ModuleType):
    """A stand-in for a package that is not installed (tensorflow): it encloses intercepted modules and re-exports their names."""

    def __init__(self, name: str, names: Mapping[str, Any]) -> None:
        super().__init__(name, "Answered by oplet.")
        self.__dict__.update(names)
        if name in VERSIONS:
            self.__dict__["__version__"] = VERSIONS[name]

    def __getattr__(self, name: str) -> Any:
        inside = f"{self.__name__}.{name}"
        if inside in _LITE_STUBS or any(inside == door or door.startswith(f"{inside}.") for door in INTERCEPTED):
            return import_module(inside)
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        package = self.__name__.partition(".")[0]
        raise AttributeError(
            f"{package} is not installed, and oplet answers its interpreter alone: {self.__name__} has no {name!r}; install "
            f"{package} for it."
        )


def asking_module() -> str:
    """Return the name of the module that imports or looks up another one, from within a finder: the nearest frame outside the
    import system.
    """
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_import_system(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


def _is_import_system(name: str) -> bool:
    return name in _IMPORT_SYSTEM or name.startswith(("importlib.metadata", "importlib_metadata", "oplet_litert_shim"))


def _asking() -> tuple[str, bool]:
    """Return the name of the module that looks for another one, and whether it imports it or only asks whether it is there."""
    frame, imports = sys._getframe(1), False
    while frame.f_back is not None and _is_import_system(frame.f_globals.get("__name__", "")):
        imports = imports or frame.f_code.co_name == "_find_and_load"
        frame = frame.f_back
    return frame.f_globals.get("__name__", ""), imports


class _PatchingLoader(Loader):
    """A loader that loads a module with the module's own loader, and then patches it."""

    def __init__(self, loader: Any, hooks: ImportHooks) -> None:
        self._loader = loader
        self._hooks = hooks

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the module's own loader create it."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Let the module's own loader run it, then patch the names."""
        self._loader.exec_module(module)
        self._hooks.patch(module)
        self._hooks.used["tensorflow.lite"] = None


class Imports(NamedTuple):
    """The modules of LiteRT's packages that a program imported."""

    answered: Mapping[str, None]  #: Names of the modules that oplet replaced by its own.
    passed: Mapping[str, None]  #: Names of the modules that were imported from LiteRT itself.
    refused: Mapping[str, str]  #: The modules whose import was refused, each with the error message.


@contextmanager
def intercept_imports(
    names: Mapping[str, Any], exempt: Collection[str], *, without_tensorflow: bool = False
) -> Iterator[Imports]:
    """Replace LiteRT's modules by oplet's in imports while the `with` block runs; yield the record of imports, which is updated live.

    Args:
        names: the contents of the replaced modules: LiteRT's names ("Interpreter"), each with the oplet object that replaces it.
        exempt: top-level packages whose own imports get LiteRT's real modules, besides oplet, LiteRT and TensorFlow.
        without_tensorflow: provide `tensorflow.lite` even if TensorFlow is not installed; programs that test for TensorFlow then find it.
    """
    hooks = ImportHooks(names, {*_OURS, "ai_edge_litert", "tensorflow", "tflite_runtime", *exempt}, without_tensorflow)
    answered = [
        *INTERCEPTED,
        *(name for name in (*STAND_INS, *COMPANIONS) if name in sys.modules and answer_of(name) is not None),
    ]
    hidden = {name: sys.modules.pop(name) for name in answered if name in sys.modules}
    for name in _LITE_NAMES:
        if name in sys.modules:
            hooks.patch(sys.modules[name])
    sys.meta_path.insert(0, hooks)
    try:
        yield Imports(hooks.used, hooks.passed, hooks.refused)
    finally:
        sys.meta_path.remove(hooks)
        hooks.undo()
        for name, module in list(sys.modules.items()):
            if getattr(getattr(module, "__spec__", None), "loader", None) is hooks:
                del sys.modules[name]
                package, _, last = name.rpartition(".")
                if vars(sys.modules.get(package, module)).get(last) is module:
                    delattr(sys.modules[package], last)
        for name, module in hidden.items():
            sys.modules[name] = module
            package, _, last = name.rpartition(".")
            setattr(sys.modules[package], last, module)
