"""Check of the licences of all required packages, as installed, against those that are compatible with Apache-2.0.

usage: python -m scripts.licences [--write]

Lists the installed packages with their licences; the exit code is 1 if one does not fit. --write generates docs/licences.md.
"""

from __future__ import annotations

import importlib.metadata as metadata
import re
import sys
from collections.abc import Iterator
from email.message import Message
from typing import NamedTuple, cast

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import canonicalize_name

from scripts.requirements import DEVELOPMENT, ROOT, RUN_TIME, installed, wanted
from scripts.vendored import LIBRARIES

__all__ = ["EXCEPTIONS", "FITS", "USES", "fits", "licence_of", "page", "problems"]

PAGE = ROOT / "docs" / "licences.md"

_PERMISSIVE = frozenset(
    {
        "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "HPND", "ISC",
        "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0", "Unicode-3.0", "Unlicense", "Zlib",
    }
)  # fmt: skip
#: Acceptable licences, by audience. Development tools are not distributed with the packages, so that copyleft is acceptable for them.
FITS = {
    RUN_TIME: _PERMISSIVE,
    DEVELOPMENT: _PERMISSIVE | {"MPL-2.0", "LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later"},
}

#: Packages that fit although their licence is not on the list, or that do not state it: the licence, and why it fits.
EXCEPTIONS = {
    "certifi": ("MPL-2.0", "a list of certificates, which is read and not changed"),
    "docutils": ("BSD-2-Clause", "public domain and BSD; of the parts under the GPL, an Emacs mode, none is imported"),
    "namex": ("Apache-2.0", "its file says so, its metadata nothing"),
    "orjson": ("MPL-2.0 AND (Apache-2.0 OR MIT)", "mlserver's; the MPL covers its own files, which stay as they are"),
    "pathspec": ("MPL-2.0", "hatchling's, for `oplet build` alone; the MPL covers its own files, which stay as they are"),
    "tflite-micro": ("Apache-2.0", "its source says so, its package nothing"),
    "tqdm": ("MPL-2.0 AND MIT", "ai-edge-litert's; the MPL covers its own files, which stay as they are"),
    "zope-event": ("ZPL-2.1", "gevent's, for mlserver; permissive, and compatible by the lists of the FSF and the OSI"),
    "zope-interface": ("ZPL-2.1", "gevent's, for mlserver; permissive, and compatible by the lists of the FSF and the OSI"),
}

#: Direct requirements of this repository: the licence, and the purpose.
USES = {
    "ai-edge-litert": ("Apache-2.0", "the engine of `oplet-litert-delegate`; what the numbers are compared with"),
    "ai-edge-model-explorer": ("Apache-2.0", "the viewer that loads `oplet-model-explorer`, in its tests"),
    "ai-edge-quantizer": ("Apache-2.0", "its tests are run on oplet"),
    "apache-beam": ("Apache-2.0", "the pipelines of `oplet-beam`"),
    "atheris": ("Apache-2.0", "fuzzing that follows coverage"),
    "audioop-lts": ("PSF-2.0", "the programs in tests/programs"),
    "audioread": ("MIT", "the programs in tests/programs"),
    "cyclonedx-python-lib": ("Apache-2.0", "the bill of materials of a release"),
    "dask": ("BSD-3-Clause", "the examples of docs/spark-and-dask.md"),
    "flatbuffers": ("Apache-2.0", "custom options"),
    "google-re2": ("BSD-3-Clause", "regular expressions, as TensorFlow reads them"),
    "graphlay": ("MIT OR Apache-2.0", "the pictures of `oplet partition`"),
    "hatchling": ("MIT", "building the packages, and those of `oplet build`"),
    "hypothesis": ("MPL-2.0", "tests with generated values"),
    "importlib-metadata": ("Apache-2.0", "finding plugins"),
    "jinja2": ("BSD-3-Clause", "the chat templates of `oplet-lm`"),
    "librosa": ("ISC", "the programs in tests/programs"),
    "matplotlib": ("PSF-2.0", "the programs in tests/programs"),
    "jax": ("Apache-2.0", "the engine of `oplet-xla-delegate`"),
    "mike": ("BSD-3-Clause", "the documentation site"),
    "mir-eval": ("MIT", "the programs in tests/programs"),
    "mkdocs": ("BSD-2-Clause", "the documentation site"),
    "mkdocs-gen-files": ("MIT", "the documentation site"),
    "mkdocs-literate-nav": ("MIT", "the documentation site"),
    "mkdocs-material": ("MIT", "the documentation site"),
    "mkdocstrings": ("ISC", "the documentation site"),
    "ml-dtypes": ("Apache-2.0", "bfloat16, float8 and 4-bit types"),
    "mlserver": ("Apache-2.0", "the server of `oplet-serve`"),
    "mypy": ("MIT", "checking types"),
    "numba": ("BSD-2-Clause", "compiling the kernels of `oplet-compiled-ops`"),
    "numpy": ("BSD-3-Clause", "arrays"),
    "onnxruntime": ("MIT", "the programs in tests/programs"),
    "openvino": ("Apache-2.0", "the engine of `oplet-openvino-delegate`"),
    "packaging": ("Apache-2.0 OR BSD-2-Clause", "reading versions and licences"),
    "pillow": ("MIT-CMU", "pictures as inputs of the command"),
    "playwright": ("Apache-2.0", "driving the browser that pages are tested in"),
    "pluggy": ("MIT", "calling plugins"),
    "pretty-midi": ("MIT", "the programs in tests/programs"),
    "pyarrow": ("Apache-2.0", "Parquet and Arrow in `oplet run`"),
    "pydub": ("MIT", "the programs in tests/programs"),
    "pytest": ("MIT", "running tests"),
    "pytest-xdist": ("MIT", "running tests on several cores"),
    "pyyaml": ("MIT", "reading the workflows"),
    "ray": ("Apache-2.0", "the clusters of `oplet-ray`"),
    "requests": ("Apache-2.0", "the programs in tests/programs"),
    "rich": ("MIT", "tables of the command"),
    "ruff": ("MIT", "linting and formatting"),
    "scikit-learn": ("BSD-3-Clause", "the programs in tests/programs"),
    "scipy": ("BSD-3-Clause", "the programs in tests/programs"),
    "sentencepiece": ("Apache-2.0", "tokenizers of `oplet-lm`"),
    "setuptools": ("MIT", "the programs in tests/programs"),
    "tensorflow": ("Apache-2.0", "the engine of `oplet-flex-delegate`; models that are made while testing"),
    "tensorflow-text": ("Apache-2.0", "what the operators of `oplet-text-ops` are compared with"),
    "tflite-micro": ("Apache-2.0", "what the signal operators are compared with"),
    "tokenizers": ("Apache-2.0", "tokenizers of `oplet-lm`"),
    "tqdm": ("MPL-2.0 AND MIT", "the programs in tests/programs"),
    "towncrier": ("MIT", "the changelog of a release, of its fragments"),
    "twine": ("Apache-2.0", "checking what `oplet build` makes"),
    "typer": ("MIT", "the command"),
    "watchdog": ("Apache-2.0", "the programs in tests/programs"),
    "ziglang": ("MIT", "compiling `oplet-native-ops` and `oplet-compiled-ops`, for other platforms too, and libraries in tests"),
}

_CLASSIFIERS = {
    "Academic Free License (AFL)": "AFL-3.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "GNU General Public License (GPL)": "GPL-2.0-or-later",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.1-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "Historical Permission Notice and Disclaimer (HPND)": "HPND",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Public Domain": "CC0-1.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "zlib/libpng License": "Zlib",
}
#: Names of licences in the metadata field License, which is free text.
_WORDS = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "isc license": "ISC",
    "mit license": "MIT",
    "new bsd": "BSD-3-Clause",
    "psf": "PSF-2.0",
}
#: Phrases that identify a licence's text.
_PHRASES = (
    ("GNU LESSER GENERAL PUBLIC LICENSE", "LGPL-2.1-or-later"),
    ("GNU AFFERO GENERAL PUBLIC LICENSE", "AGPL-3.0-only"),
    ("GNU GENERAL PUBLIC LICENSE", "GPL-2.0-or-later"),
    ("Mozilla Public License", "MPL-2.0"),
    ("Eclipse Public License", "EPL-2.0"),
    ("Apache License Version 2.0", "Apache-2.0"),
    ("Redistribution and use in source and binary forms", "BSD-3-Clause"),
    ("Permission to use, copy, modify, and/or distribute this software", "ISC"),
    ("Permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"),
)


def licence_of(distribution: metadata.Distribution) -> str:
    """A distribution's licence as an SPDX expression, "" if it is unknown.

    Sources in order: License-Expression, the classifiers, which all apply, License, and the texts of licence files.
    """
    about = cast(Message, distribution.metadata)  # the actual class, of which the declared protocol has fewer methods
    if expression := _canonical(about.get("License-Expression") or ""):
        return expression
    named = [text.rpartition("::")[2].strip() for text in about.get_all("Classifier") or () if text.startswith("License ::")]
    known = [
        _CLASSIFIERS.get(name, f"LicenseRef-{re.sub('[^A-Za-z0-9]+', '-', name)}") for name in named if name != "OSI Approved"
    ]
    if known:
        return " AND ".join(sorted(set(known)))
    words = (about.get("License") or "").strip()
    words = words.removeprefix("OSI Approved :: ")
    if expression := _WORDS.get(words.lower()) or _canonical(words):
        return expression
    found = {licence for text in (words, *_texts(distribution)) if (licence := _recognised(text))}
    return " AND ".join(sorted(found))


def _canonical(text: str) -> str:
    try:
        return str(canonicalize_license_expression(text)) if text else ""
    except InvalidLicenseExpression:
        return ""


def _texts(distribution: metadata.Distribution) -> Iterator[str]:
    for file in distribution.files or ():
        if re.match(r"(LICEN[CS]E|COPYING)", file.name, re.IGNORECASE) and ".dist-info" in file.parts[0]:
            yield file.locate().read_text("utf-8", errors="replace")  # type: ignore[attr-defined, unused-ignore]


def _recognised(text: str) -> str:
    joined = " ".join(text.split())
    return next((licence for phrase, licence in _PHRASES if phrase in joined), "")


def fits(expression: str, allowed: frozenset[str]) -> bool:
    """Whether an SPDX expression can be satisfied with allowed licences only."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace(" WITH ", "\0"))
    place = 0

    def either() -> bool:
        nonlocal place
        value = both()
        while place < len(words) and words[place] == "OR":
            place += 1
            value = both() or value
        return value

    def both() -> bool:
        nonlocal place
        value = one()
        while place < len(words) and words[place] == "AND":
            place += 1
            value = one() and value
        return value

    def one() -> bool:
        nonlocal place
        if place >= len(words):
            return False
        word = words[place]
        place += 1
        if word == "(":
            value = either()
            place += 1
            return value
        return word.replace("\0", " WITH ") in allowed

    return either() and place == len(words)


class Found(NamedTuple):
    """An installed distribution with its licence.

    Attributes:
        name: its name.
        version: its version.
        audience: RUN_TIME if users install it too, else DEVELOPMENT.
        licence: an SPDX expression, "" if unknown.
        problem: a sentence on why the licence does not fit, "" if it does.
    """

    name: str
    version: str
    audience: str
    licence: str
    problem: str


def everything() -> list[Found]:
    """All installed direct and indirect requirements of this repository, with verdicts."""
    needs = wanted()
    users = installed(need.requirement for need in needs if need.audience == RUN_TIME)
    found = []
    for name, distribution in installed(need.requirement for need in needs).items():
        audience = RUN_TIME if name in users else DEVELOPMENT
        licence = EXCEPTIONS[name][0] if name in EXCEPTIONS else licence_of(distribution)
        problem = ""
        if not licence:
            problem = (
                f"Nothing says which licence {name} {distribution.version} has; look at its source, and add it to EXCEPTIONS in "
                "scripts/licences.py with the reason, or do without it."
            )
        elif name not in EXCEPTIONS and not fits(licence, FITS[audience]):
            problem = (
                f"{name} {distribution.version} is required at {audience} and has the licence {licence}, which is not among those that "
                f"fit Apache-2.0 there; replace it, or add it to EXCEPTIONS in scripts/licences.py with the reason why it fits."
            )
        found.append(Found(name, distribution.version, audience, licence, problem))
    return found


def problems() -> list[str]:
    """Sentences on licences that do not fit, and on differences between `USES` and the packages."""
    found = everything()
    result = [each.problem for each in found if each.problem]
    here = {each.name: each.licence for each in found}
    direct: set[str] = {canonicalize_name(need.requirement.name) for need in wanted()}
    for name in sorted(direct - USES.keys()):
        result.append(
            f"{name} is required and not in USES of scripts/licences.py; say there what it is used for, with its licence."
        )
    for name in sorted(USES.keys() - direct):
        result.append(f"{name} is in USES of scripts/licences.py, and nothing requires it any more; take it out.")
    for name in sorted(direct & USES.keys() & here.keys()):
        said, has = (set(re.findall(r"[\w.-]+", text)) - {"AND", "OR", "WITH"} for text in (USES[name][0], here[name]))
        # "BSD License" does not say which variant.
        bsd = {"BSD-2-Clause", "BSD-3-Clause"}
        if has and not said & has and not (said & bsd and has & bsd):
            result.append(
                f"USES in scripts/licences.py says that {name} has the licence {USES[name][0]}; installed is {here[name]}."
            )
    return result


def page() -> str:
    """The text of docs/licences.md, which does not depend on what is installed."""
    needs = wanted()
    lines = [
        "# Licences",
        "",
        "oplet and the packages in this repository are under Apache-2.0. This is what they require besides one another, made by",
        "`python -m scripts.licences --write`. The tests hold the licences of all that is installed against a list of those that fit",
        "Apache-2.0 (`scripts/licences.py`), what these packages require in turn included; an unknown licence fails them.",
    ]
    for audience, head in ((RUN_TIME, "What users install"), (DEVELOPMENT, "What only those who work on oplet install")):
        lines += ["", f"## {head}", "", "| package | versions | licence | used for | required by |", "|---|---|---|---|---|"]
        names = sorted({canonicalize_name(need.requirement.name) for need in needs if need.audience == audience})
        others = (
            {canonicalize_name(need.requirement.name) for need in needs if need.audience == RUN_TIME}
            if audience == DEVELOPMENT
            else set()
        )
        for name in names:
            if name in others:
                continue
            mine = [need for need in needs if canonicalize_name(need.requirement.name) == name and need.audience == audience]
            versions = " or ".join(
                dict.fromkeys(",".join(sorted(map(str, need.requirement.specifier), reverse=True)) or "any" for need in mine)
            )
            by = ", ".join(dict.fromkeys(f"`{need.by}`" for need in mine))
            licence, use = USES.get(name, ("", ""))
            lines.append(f"| {name} | {versions} | {licence} | {use} | {by} |")
    lines += [
        "",
        "## What the packages contain",
        "",
        "JavaScript in the pages of `oplet explore`, fetched by `python -m scripts.vendored`:",
        "",
    ]
    lines += ["| library | licence | part of |", "|---|---|---|"]
    lines += [f"| {library.package} | {library.licence} | `oplet-tools` |" for library in LIBRARIES]
    lines += ["", "## Exceptions", "", "| package | licence | why it fits |", "|---|---|---|"]
    lines += [f"| {name} | {licence} | {why} |" for name, (licence, why) in sorted(EXCEPTIONS.items())]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Print the list and the problems; with --write, write the page."""
    if "--write" in arguments:
        PAGE.write_text(page(), encoding="utf-8")
    for each in everything():
        sys.stdout.write(f"{each.name} {each.version}: {each.licence or 'unknown'} ({each.audience})\n")
    wrong = problems()
    sys.stderr.writelines(f"{text}\n" for text in wrong)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
