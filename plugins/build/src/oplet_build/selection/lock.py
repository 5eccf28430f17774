"""The lock file `oplet.lock.json`: the ops that models need, and the exact packages that serve them.

Hash of an installed distribution's code, which is the same for a wheel and an editable install of the same files.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import importlib_metadata

from oplet import Model
from oplet.errors import OpletError
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.toolkit import API_VERSION, read_file
from oplet_build.selection.needs import Key, OpNeed
from oplet_build.selection.providers import ServedOp
from oplet_build.selection.resolver_code import file_labels

__all__ = ["Lock", "LockError", "LockedOp", "hash_of", "lock_of", "requirements"]

_GROUP = "oplet"


class FingerprintError(OpletError, ValueError):
    """The files of a distribution cannot be found, so they cannot be hashed."""


class Installed(NamedTuple):
    """An installed distribution."""

    name: str
    version: str
    hash: str  #: Hash of its code, "sha256:...".


def installed(name: str) -> Installed | None:
    """Return the installed distribution of a name, with a hash of its code; None if there is none.

    The hash is SHA-256 over the sorted lines "path,sha256=..." of the wheel's RECORD, without `*.dist-info`, scripts and compiled files. An
    editable install has no such lines; they are computed from the files of its import packages.

    Raises:
        FingerprintError: its files cannot be found.
    """
    try:
        dist = importlib_metadata.distribution(name)
    except importlib_metadata.PackageNotFoundError:
        return None
    lines = [] if _is_editable(dist) else sorted(_recorded(dist))
    lines = lines or sorted(_walked(dist))
    if not lines:
        raise FingerprintError(f"The files of {dist.name} {dist.version} cannot be found; install it again.")
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")).hexdigest()
    return Installed(dist.name, dist.version, f"sha256:{digest}")


def _is_editable(dist: Any) -> bool:
    try:
        origin = json.loads(dist.read_text("direct_url.json") or "{}")
        return bool(origin.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return False


def _recorded(dist: Any) -> Iterator[str]:
    for file in dist.files or ():
        path = file.as_posix()
        if file.parts[0].endswith((".dist-info", ".egg-info")) or ".." in file.parts or not _counts(path):
            continue
        if file.hash is not None and file.hash.mode == "sha256":
            yield f"{path},sha256={file.hash.value}"
        else:
            yield _line(path, Path(str(file.locate())))


def _walked(dist: Any) -> Iterator[str]:
    modules = [entry.module for entry in dist.entry_points if entry.group == _GROUP]
    for name in sorted({module.partition(".")[0] for module in modules}):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            continue
        for place in spec.submodule_search_locations or ():
            folder = Path(place)
            yield from _files(folder.parent, folder.rglob("*"))
        if not spec.submodule_search_locations and spec.origin is not None:
            yield from _files(Path(spec.origin).parent, [Path(spec.origin)])


def _files(root: Path, files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        path = file.relative_to(root).as_posix()
        if file.is_file() and _counts(path):
            yield _line(path, file)


def _counts(path: str) -> bool:
    """Return whether a file in RECORD is code or data of the package, and not made by an installer or by Python."""
    return not path.endswith((".pyc", ".pyo", ".pth")) and "__pycache__" not in path


def _line(path: str, file: Path) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest}"


#: Version of the file format.
FORMAT = 1


class LockError(OpletError, ValueError):
    """A lock file cannot be read, or the installed package that has a kernel cannot be locked."""


@dataclass(frozen=True)
class LockedOp(OpNeed):
    """An op, with the distribution whose kernel runs it."""

    distribution: str = ""  #: The package that has the kernel.
    fallback: bool = False  #: Whether this kernel serves only nodes that another one declines.
    library: str = ""  #: The name of the compiled library that the kernel calls, "" if it calls none.
    library_hash: str = ""  #: "sha256:..." of that library.


@dataclass(frozen=True)
class Lock:
    """The contents of a lock file: ops, and the packages that have their kernels."""

    oplet: str  #: oplet's version.
    api: int  #: The version of the plugin contract.
    models: tuple[tuple[str, str], ...]  #: Names of the models' files and their SHA-256, in hexadecimal.
    ops: tuple[LockedOp, ...]  #: The ops, sorted by name.
    distributions: tuple[Installed, ...]  #: The packages with kernels for the ops, sorted by name.

    def to_json(self) -> str:
        """Return the text of the lock file; the same lock gives the same text."""
        packages = {package.name: package for package in self.distributions}
        ops = [
            {
                "name": op.name,
                "custom": op.custom,
                **({"composite": True} if op.composite else {}),
                **({"fallback": True} if op.fallback else {}),
                "versions": list(op.versions),
                "types": [type.name for type in op.types],
                "distribution": op.distribution,
                "distribution_version": packages[op.distribution].version,
                "distribution_hash": packages[op.distribution].hash,
                **({"library": op.library, "library_hash": op.library_hash} if op.library else {}),
            }
            for op in self.ops
        ]
        value = {
            "made_by": "oplet select",
            "format": FORMAT,
            "oplet": {"version": self.oplet, "plugin_api": self.api},
            "models": [{"name": name, "sha256": digest} for name, digest in self.models],
            "ops": ops,
        }
        return json.dumps(value, indent=2) + "\n"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Lock:
        """Read a lock file.

        Raises:
            LockError: the file cannot be read, or is not a lock file.
        """
        try:
            text = read_file(path).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise LockError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}.") from error
        try:
            return _parsed(json.loads(text))
        except (RecursionError, MemoryError) as error:
            raise LockError(f"'{path}' is not a lock file of oplet: it is nested too deeply, or too large.") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, LockError):
                raise LockError(f"'{path}' {error}") from error
            what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise LockError(
                f"'{path}' is not a lock file of oplet: {what}; make it with `oplet select MODEL --lock {path}`."
            ) from error


def _parsed(value: Any) -> Lock:
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    if value["format"] != FORMAT:
        raise LockError(f"has the format {value['format']!r} and this oplet reads {FORMAT}; upgrade oplet, or make it anew.")
    ops: list[LockedOp] = []
    packages: dict[str, Installed] = {}
    for op in value["ops"]:
        types = tuple(sorted(_type(name) for name in op["types"]))
        versions = tuple(sorted(_number(version) for version in op["versions"]))
        name, distribution = _text(op["name"]), _text(op["distribution"])
        composite = bool(op.get("composite", False))
        if not op["custom"] and not composite and name not in BuiltinOperator.__members__:
            raise ValueError(f"there is no built-in operator {name!r}")
        fallback = bool(op.get("fallback", False))
        library, library_hash = _text(op.get("library", "")), _text(op.get("library_hash", ""))
        custom = bool(op["custom"])
        ops.append(
            LockedOp(name, custom, versions, types, (), frozenset(), composite, distribution, fallback, library, library_hash)
        )
        package = Installed(distribution, _text(op["distribution_version"]), _text(op["distribution_hash"]))
        if packages.setdefault(distribution, package) != package:
            raise ValueError(f"it has {distribution} in two versions or with two hashes")
    models = tuple((_text(model["name"]), _text(model["sha256"])) for model in value["models"])
    oplet = value["oplet"]
    return Lock(
        _text(oplet["version"]), _number(oplet["plugin_api"]), models, tuple(ops), tuple(packages[n] for n in sorted(packages))
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} stands where a text must be")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} stands where a number must be")
    return value


def _type(name: Any) -> TensorType:
    if name not in TensorType.__members__:
        raise ValueError(f"there is no tensor type {name!r}")
    return TensorType[name]


def lock_of(served: Sequence[ServedOp], models: Iterable[Model]) -> Lock:
    """Return a lock of the ops, with the installed packages that have kernels for them.

    Args:
        served: the ops with their providers.
        models: the models that the needs came from.

    Raises:
        LockError: a provider's code belongs to no installed distribution, or a compiled library cannot be read.
    """
    from oplet import __version__

    ops: dict[tuple[Key, bool, str, str], LockedOp] = {}
    packages: dict[str, Installed] = {}
    for need, entries, fallbacks in served:
        for place, entry in ((place, entry) for place, each in enumerate((entries, *fallbacks)) for entry in each):
            origin = entry.provenance
            package = packages.get(origin.distribution) or (installed(origin.distribution) if origin.distribution else None)
            if package is None:
                raise LockError(
                    f"{need.name} is served by the plugin '{origin.plugin}', which no installed distribution brings, "
                    "so that nothing can be pinned; install it as a package."
                )
            packages[origin.distribution] = package
            library = entry.load(entry.min_version).library
            name, digest = os.path.basename(library), hash_of(library) if library else ""
            key = need.key, place > 0, package.name, name
            versions = set(range(entry.min_version, entry.max_version + 1)) | set(ops[key].versions if key in ops else ())
            in_order = tuple(sorted(versions))
            told = replace(need, versions=in_order, models=(), uses=frozenset())
            ops[key] = LockedOp(**vars(told), distribution=package.name, fallback=place > 0, library=name, library_hash=digest)
    names = [(os.path.basename(model.name), _digest(model)) for model in models]
    distributions = {package.name: package for package in packages.values()}
    return Lock(
        __version__,
        API_VERSION,
        tuple(sorted(set(names))),
        tuple(ops[key] for key in sorted(ops)),
        tuple(distributions[name] for name in sorted(distributions)),
    )


def hash_of(library: str) -> str:
    """Return the SHA-256 of a compiled library's file, as "sha256:" and hexadecimal digits.

    Raises:
        LockError: the file cannot be read.
    """
    try:
        return f"sha256:{hashlib.sha256(read_file(library)).hexdigest()}"
    except OSError as error:
        raise LockError(f"The library '{library}' cannot be read: {error.strerror or error}.") from error


def _digest(model: Model) -> str:
    return hashlib.sha256(model.data if len(model.data) else model.to_bytes()).hexdigest()


def requirements(lock: Lock) -> str:
    """Return the text of a requirements.txt that installs exactly the locked distributions."""
    models = ", ".join(file_labels(name for name, _ in lock.models))
    pins = {"oplet-core": lock.oplet} | {package.name: package.version for package in lock.distributions}
    head = "# Made by `oplet select`" + (f" for {models}" if models and len(models) < 100 else "") + "."
    return "\n".join([head, *(f"{name}=={version}" for name, version in sorted(pins.items()))]) + "\n"
