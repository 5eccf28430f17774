"""Writer of wheels, by means of hatchling."""

from __future__ import annotations

import re
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from oplet import write_atomically
from oplet.errors import text_of
from oplet.texts import plain
from oplet.toolkit import install_command
from oplet_build.building.cutting.cut_core import core_packages
from oplet_build.building.cutting.cut_kernels import CutPackage
from oplet_build.building.distributions import Distribution, licence_texts
from oplet_build.building.error import BuildError
from oplet_build.selection.resolver_code import file_labels

__all__ = ["CoreParts", "platform_tag", "requirements", "write_wheel"]

#: What every wheel of kernels requires.
_CORE = "oplet-core"

_PROJECT = """[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = {distribution}
version = {version}
description = {summary}
readme = "README.md"
license = {license}
license-files = {license_files}
requires-python = {requires_python}
dependencies = [{dependencies}]

[project.entry-points.oplet]
{name} = {module}
{scripts}
[tool.hatch.build]
ignore-vcs = true

[tool.hatch.build.targets.wheel]
packages = [{packages}]
"""
#: Of a wheel with compiled libraries: the hook that gives it its platform's tag.
_HOOK_TABLE = "\n[tool.hatch.build.targets.wheel.hooks.custom]\n"
_HOOK = """from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-{platform}"
"""


@dataclass(frozen=True)
class CoreParts:
    """Contents of a wheel besides kernels, when it includes the core."""

    files: dict[str, bytes]  #: Files of the core and of the models, by path.
    requires: tuple[str, ...]  #: The wheel's requirements, in place of oplet and oplet's requirements.
    sources: tuple[Distribution, ...]  #: The pip packages that the core and the kernels come from.
    command: str = ""  #: The module and function of the wheel's command, "" for none.


def write_wheel(cut: CutPackage, version: str, directory: Path, core: CoreParts | None = None) -> Path:
    """Write a wheel; the same contents give the same bytes.

    Args:
        cut: the kernels' package.
        directory: the folder to write into, created if missing.
        core: the core, if the wheel includes it.

    Raises:
        BuildError: hatchling is missing, or the version or a source's metadata cannot be used.
    """
    try:
        from hatchling.builders.wheel import WheelBuilder
        from packaging.version import InvalidVersion, Version
    except ImportError:
        raise BuildError(f"Building wheels needs hatchling: {install_command('oplet-build')}") from None
    try:
        Version(version)
    except InvalidVersion:
        raise BuildError(f"'{version}' is not a version: give numbers with dots, such as 1.0.") from None
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="oplet-build-") as folder:
        root = Path(folder)
        for path, data in project_files(cut, version, core).items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, data)
        try:
            [wheel] = WheelBuilder(str(root)).build(directory=str(root / "dist"), versions=["standard"])
        except (ValueError, TypeError, OSError) as error:
            raise BuildError(f"hatchling cannot build the wheel: {text_of(error)}.") from error
        made = Path(wheel)
        write_atomically(directory / made.name, made.read_bytes())
    return directory / made.name


def project_files(cut: CutPackage, version: str, core: CoreParts | None = None) -> dict[str, bytes]:
    """Return the files of the project that the wheel is built from: package, pyproject.toml, README.md, licences."""
    files = _without_empty_modules(cut.files)
    packages = [cut.name]
    dependencies = requirements(cut)
    scripts = ""
    if core is not None:
        cut = replace(cut, sources=list(core.sources))
        files.update(core.files)
        packages += core_packages(core.files)
        dependencies = sorted(core.requires)
        if core.command:
            scripts = f"\n[project.scripts]\n{cut.name.replace('_', '-')} = {_toml(core.command)}\n"
    texts = licence_texts(cut.sources)
    files.update(texts)
    files["README.md"] = _readme(cut).encode()
    names = ", ".join(source.name for source in cut.sources)
    ops = len({kernel.key for kernel in cut.kernels})
    files["pyproject.toml"] = _PROJECT.format(
        distribution=_toml(cut.name.replace("_", "-")),
        version=_toml(version),
        summary=_toml(f"{ops} operator{'s'[: ops != 1]} for oplet, cut out of {names}"),
        license=_toml(_license(cut)),
        license_files=f"[{', '.join(_toml(path) for path in sorted(texts))}]",
        requires_python=_toml(_requires_python(source.requires_python for source in cut.sources)),
        dependencies=", ".join(map(_toml, dependencies)),
        packages=", ".join(map(_toml, packages)),
        scripts=scripts,
        name=cut.name,
        module=_toml(cut.name),
    ).encode()
    if cut.libraries:
        files["pyproject.toml"] += _HOOK_TABLE.encode()
        files["hatch_build.py"] = _HOOK.format(platform=platform_tag(cut)).encode()
    return files


def platform_tag(cut: CutPackage) -> str:
    """Return the platform tag for a build with compiled libraries: that of their packages' wheels, if all agree, else this
    machine's.
    """
    owners = set(cut.libraries.values())
    promised = {source.platforms for source in cut.sources if source.name in owners}
    if len(promised) == 1 and (platforms := promised.pop()):
        return ".".join(platforms)
    return re.sub(r"[.-]", "_", sysconfig.get_platform())


def _without_empty_modules(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files without empty `__init__.py`, which Python does not need; those in folders with data files stay."""
    with_data = {str(PurePosixPath(path).parent) for path in files if not path.endswith(".py")}
    return {
        path: data
        for path, data in files.items()
        if data or PurePosixPath(path).name != "__init__.py" or any(d.startswith(path.rpartition("/")[0]) for d in with_data)
    }


def _readme(cut: CutPackage) -> str:
    """Return the text of README.md, which the package index shows: the ops, their source packages, and the models."""
    models = file_labels(model for need in cut.needs for model in need.models)
    lines = [
        f"# {cut.name.replace('_', '-')}",
        "",
        "Operators for oplet, cut out by `oplet build`" + (f" for {', '.join(models)}." if models else "."),
        "",
        "| operator | versions | from |",
        "|---|---|---|",
    ]
    for kernel in cut.kernels:
        versions = (
            str(kernel.min_version)
            if kernel.min_version == kernel.max_version
            else f"{kernel.min_version} to {kernel.max_version}"
        )
        told = ", what the one before declines" if kernel.fallback else ""
        lines.append(f"| {plain(kernel.op).replace('|', chr(92) + '|')} | {versions} | {kernel.distribution}{told} |")
    lines += [""] + [f"- {source.name} {source.version}: {source.license or 'licence not named'}" for source in cut.sources]
    return "\n".join(lines) + "\n"


def _license(cut: CutPackage) -> str:
    """Return the SPDX expression of the licences of all sources."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    found: dict[str, None] = {}
    for source in cut.sources:
        try:
            found[canonicalize_license_expression(source.license)] = None
        except InvalidLicenseExpression:
            found[f"LicenseRef-{re.sub(r'[^A-Za-z0-9.]+', '-', source.name)}"] = None
    if len(found) == 1:
        return next(iter(found))
    return " AND ".join(f"({each})" if " OR " in each else each for each in sorted(found))


def requirements(cut: CutPackage) -> list[str]:
    """Return the requirements of the source packages, except on one another; the core is always one, and replaces a requirement of `oplet`,
    which would install all built-in operators.
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    own = {canonicalize_name(source.name) for source in cut.sources}
    found: dict[str, str] = {}
    for source in cut.sources:
        for text in source.requires:
            requirement = Requirement(text)
            if requirement.name == "oplet":
                requirement.name, requirement.extras = _CORE, set()
            if canonicalize_name(requirement.name) not in own:
                found[str(requirement)] = canonicalize_name(requirement.name)
    if _CORE not in found.values():
        found[_CORE] = _CORE
    return sorted(found)


def _requires_python(ranges: Iterable[str]) -> str:
    """Return a version specifier of the Python versions in all these ranges, those of the sources."""
    clauses = {clause.strip() for each in ranges for clause in each.split(",") if clause.strip()}
    return ",".join(sorted(clauses | {">=3.10"}))


def _toml(text: str) -> str:
    """Format a text as a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
