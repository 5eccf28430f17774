"""Write what goes with the files of a release: their checksums, and the bill of materials.

usage: python -m scripts.release_files FOLDER

FOLDER is one that `python -m scripts.packages` filled. `SHA256SUMS` is checked by `sha256sum --check SHA256SUMS` in it; `oplet.cdx.json`
is a bill of materials (CycloneDX 1.6): every package with its licence, files and their SHA-256, what it requires, and what is copied
into it. Both are the same bytes for the same files.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import uuid
import zipfile
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from email.message import Message
from email.parser import Parser
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from scripts.vendored import LIBRARIES

__all__ = ["BILL", "SUMS", "bill_of_materials", "checksums", "main", "metadata_of"]

SUMS, BILL = "SHA256SUMS", "oplet.cdx.json"
#: The package that the JavaScript libraries of `scripts.vendored` are copied into.
_VENDORS = "oplet-tools"
#: The oldest time that a zip archive can hold, which hatchling gives the files in wheels.
_TIME = datetime(2020, 2, 2, tzinfo=timezone.utc)


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every distribution below a folder, by its path from there."""
    files = sorted(path for path in folder.rglob("*") if path.name.endswith((".whl", ".tar.gz")))
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def metadata_of(wheel: Path) -> Message:
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA") and name.count("/") == 1]
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def bill_of_materials(folder: Path, sums: Mapping[str, str]) -> str:
    """Return the bill of materials of the distributions below a folder, as CycloneDX's JSON.

    Args:
        folder: the folder.
        sums: what `checksums` says of it.
    """
    by_name: dict[str, list[str]] = {}
    for path in sums:
        name = Path(path).name
        parsed = parse_wheel_filename(name)[0] if name.endswith(".whl") else parse_sdist_filename(name)[0]
        by_name.setdefault(parsed, []).append(path)
    stated = {
        name: metadata_of(folder / next(path for path in paths if path.endswith(".whl"))) for name, paths in by_name.items()
    }
    ours = {name: _component(stated[name], {path: sums[path] for path in by_name[name]}) for name in sorted(by_name)}
    required = {name: _required(stated[name]) for name in ours}
    others = {name: _other(name) for name in sorted({need for needs in required.values() for need in needs} - ours.keys())}
    every = ours | others
    identity = uuid.uuid5(uuid.NAMESPACE_OID, "\n".join(f"{path} {digest}" for path, digest in sums.items()))
    bill = Bom(components=every.values(), serial_number=identity)
    bill.metadata.timestamp = _TIME
    for name, needs in required.items():
        bill.register_dependency(ours[name], [every[need] for need in needs if need != name])
    return str(make_outputter(bill, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)) + "\n"


def _component(stated: Message, files: Mapping[str, str]) -> Component:
    name, version = canonicalize_name(stated["Name"]), stated["Version"]
    url = PackageURL("pypi", name=name, version=version)
    needs = [f"{need}" for need in stated.get_all("Requires-Dist") or ()]
    return Component(
        name=name, version=version, type=ComponentType.LIBRARY, bom_ref=url.to_string(), purl=url, description=stated["Summary"],
        licenses=[LicenseExpression(stated["License-Expression"])],
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION, url=XsUri(path), hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)]
            )
            for path, digest in files.items()
        ],
        properties=[Property(name="oplet:requires-python", value=stated["Requires-Python"]), *(Property(name="oplet:requires", value=need) for need in needs)],
        components=_copied() if name == _VENDORS else (),
    )  # fmt: skip


def _required(stated: Message) -> list[str]:
    """Return the names of what a package requires without extras, in order."""
    needs = [Requirement(text) for text in stated.get_all("Requires-Dist") or ()]
    return sorted({canonicalize_name(need.name) for need in needs if need.marker is None or "extra" not in str(need.marker)})


def _other(name: str) -> Component:
    url = PackageURL("pypi", name=name)
    return Component(name=name, type=ComponentType.LIBRARY, bom_ref=url.to_string(), purl=url)


def _copied() -> Iterable[Component]:
    for library in LIBRARIES:
        package, _, version = library.package.rpartition("@")
        namespace, _, name = package.rpartition("/")
        url = PackageURL("npm", namespace=namespace or None, name=name, version=version)
        yield Component(
            name=package, version=version, type=ComponentType.LIBRARY, bom_ref=url.to_string(), purl=url,
            licenses=[LicenseExpression(library.licence)],
        )  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Write both files.

    Raises:
        SystemExit: the folder has no distributions.
    """
    parser = argparse.ArgumentParser(prog="python -m scripts.release_files", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    sums = checksums(folder)
    if not sums:
        sys.exit(f"{folder} has no distributions: python -m scripts.packages {folder} makes them.")
    (folder / SUMS).write_text("".join(f"{digest}  {path}\n" for path, digest in sums.items()), "utf-8")
    (folder / BILL).write_text(bill_of_materials(folder, sums), "utf-8")


if __name__ == "__main__":
    main()
