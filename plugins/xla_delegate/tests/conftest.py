from __future__ import annotations

import importlib.util

if importlib.util.find_spec("jax") is None:  # the package is an extra: its tests run where jax is installed
    collect_ignore_glob = ["test_*.py"]
