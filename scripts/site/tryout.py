"""The files that the page *Try a model in the browser* loads: Pyodide, and oplet with what it requires, each with its SHA-256.

`generate` writes them below `try/` of the site. OPLET_PYODIDE names a folder with Pyodide's files, which the site then holds; else they are loaded
from Pyodide's content delivery network.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.packages import build
from scripts.requirements import ROOT, tomllib

__all__ = ["FROM_ELSEWHERE", "PACKAGES", "VERSION", "archive", "files"]

#: Pyodide's version, which docs/try.md and the workflow *browser* name too.
VERSION = "0.28.3"
_NPM, _FULL = f"https://cdn.jsdelivr.net/npm/pyodide@{VERSION}/", f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
_NUMPY = "numpy-2.2.5-cp313-cp313-pyodide_2025_0_wasm32.whl"
#: What comes from elsewhere: the name that the worker knows it by, its address, and its SHA-256. numpy's is what Pyodide's list of packages says.
FROM_ELSEWHERE = {
    "pyodide.js": (_NPM + "pyodide.js", "24a458425dcb4ea9836eb5ce26701d18cb769374e2b79247602ba605bf093278"),
    "pyodide.asm.js": (_NPM + "pyodide.asm.js", "b22e5831eade9ff10e6fe2c811c68688cd91f10154377b4f80debcf5bafa1e56"),
    "pyodide.asm.wasm": (_NPM + "pyodide.asm.wasm", "5effb6a1a6cc4a1a85bec4622701aa797c031e1de923cbbaf2ad47abdc4ab325"),
    "python_stdlib.zip": (_NPM + "python_stdlib.zip", "71fee17f88a6260ec8c9c7c063533ee59c021fdc88a1ce76247378d3c4a35f4c"),
    "pyodide-lock.json": (_NPM + "pyodide-lock.json", "f6e6f42f451f42affbbcddb00e8c9a3278dcbf399f57aab9f3f568839a7ff4a6"),
    "numpy": (_FULL + _NUMPY, "3db3c4f3e0448f4d62a85c262692f1260ccd8a91335442bd2442f21ffeddb558"),
}
#: Packages of this repository that the page has, by their folders: those of pure Python that serve operators, and the tools.
PACKAGES = ("core", "atan_op", "builtin_ops", "larq_ops", "mediapipe_ops", "signal_ops", "text_ops", "tools")
#: What they require and the archive leaves out: Pyodide has its own numpy, and no build of ml_dtypes, which is for types that few models have; the
#: rest is for the command.
_LEFT_OUT = {"numpy", "ml-dtypes", "pillow", "rich", "typer"}
#: What pip writes beside a package's metadata.
_OF_PIP = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
_TIME = (2020, 2, 2, 0, 0, 0)


def files(pyodide: Path | None = None) -> dict[str, bytes]:
    """Return the files that the site holds for the page, by their paths below `try/`.

    Args:
        pyodide: a folder with Pyodide's files and its wheel of numpy, for a site that holds them; by default what OPLET_PYODIDE names.

    Raises:
        FileNotFoundError: a file of Pyodide is not in the folder.
    """
    folder = pyodide or (Path(os.environ["OPLET_PYODIDE"]) if os.environ.get("OPLET_PYODIDE") else None)
    found = {"packages.zip": archive(), "visiting.py": (ROOT / "scripts" / "site" / "visiting.py").read_bytes()}
    listed = {name: _entry(name, hashlib.sha256(data).digest()) for name, data in found.items()}
    for name, (address, digest) in FROM_ELSEWHERE.items():
        if folder is None:
            listed[name] = _entry(address, bytes.fromhex(digest))
        else:
            file = folder / address.rpartition("/")[2]
            found[f"pyodide/{file.name}"] = data = file.read_bytes()
            listed[name] = _entry(f"pyodide/{file.name}", hashlib.sha256(data).digest())
    return found | {"files.json": json.dumps(listed, indent=1).encode()}


def _entry(address: str, digest: bytes) -> dict[str, str]:
    return {"address": address, "integrity": f"sha256-{base64.b64encode(digest).decode()}"}


def archive() -> bytes:
    """Return a zip archive of all packages as they lie in a Python's folder of packages; the same bytes for the same packages."""
    members = dict(_of_others())
    with tempfile.TemporaryDirectory() as place:
        for name in PACKAGES:
            [wheel] = [file for file in build(_folder(name), Path(place)) if file.suffix == ".whl"]
            with zipfile.ZipFile(wheel) as opened:
                members |= {each: opened.read(each) for each in opened.namelist()}
    return _packed(members)


def _of_others() -> Iterator[tuple[str, bytes]]:
    """Yield what is installed of the other packages: code, metadata and licences."""
    for name in _others():
        for file in metadata.distribution(name).files or ():
            if file.suffix != ".pyc" and ".." not in file.parts and file.name not in _OF_PIP:
                yield file.as_posix(), Path(str(file.locate())).read_bytes()


def _others() -> list[str]:
    """Return the names of the packages of others that those of this repository require, with what these require."""
    projects = [tomllib.loads((_folder(name) / "pyproject.toml").read_text("utf-8"))["project"] for name in PACKAGES]
    seen = {canonicalize_name(project["name"]) for project in projects}
    wanted = [text for project in projects for text in project["dependencies"]]
    found = []
    while wanted:
        need = Requirement(wanted.pop())
        name = canonicalize_name(need.name)
        if (
            name in seen
            or name in _LEFT_OUT
            or name.startswith("oplet")
            or not (need.marker is None or need.marker.evaluate({"extra": ""}))
        ):
            continue
        seen.add(name)
        found.append(name)
        wanted += metadata.requires(name) or ()
    return sorted(found)


def _folder(name: str) -> Path:
    return ROOT / name if name == "core" else ROOT / "plugins" / name


def _packed(members: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, members[name])
    return made.getvalue()
