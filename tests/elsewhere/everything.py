"""A program that imports all modules of oplet's packages, and prints, as JSON, those that fail and how."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys

#: They run when they are imported, or are libraries of C.
PROGRAMS = ("__main__", "child", "liboplet_native")


def main(packages: list[str]) -> dict[str, str]:
    failed = {}
    for package in packages:
        try:
            found = importlib.import_module(package)
        except ImportError as error:
            failed[package] = f"{type(error).__name__}: {error}"
            continue
        for module in pkgutil.walk_packages(found.__path__, f"{package}.", onerror=lambda name: None):
            # A module that is called as what it has is imported by the package, which then stands for the thing.
            if module.name.rpartition(".")[2] in (*PROGRAMS, *getattr(found, "__all__", ())):
                continue
            try:
                importlib.import_module(module.name)
            except Exception as error:
                failed[module.name] = f"{type(error).__name__}: {error}"
    return failed


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
