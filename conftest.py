"""What holds in all tests: nothing depends on how fast the machine is or how oplet was installed, and no package's tests are missed."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.kinds", "tests.durations", "tests.every_package", "tests.ended", "tests.fixtures"]

#: TensorFlow, where it judges, uses the same kernels on every processor: without oneDNN it refuses or gets wrong some convolutions.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

#: Properties are tried on the same values in every clone; `--hypothesis-profile=random` draws new ones, and more (see tests/budgets.py).
_PROFILE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("oplet", _PROFILE, max_examples=100, derandomize=True)
settings.register_profile("random", _PROFILE, max_examples=500, derandomize=False, print_blob=True)
settings.load_profile("oplet")


def pytest_configure(config: pytest.Config) -> None:
    """Give a run what a new user has: no setting of oplet's and empty caches, in a folder that the run's processes share."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    # What pip has fetched is no state of oplet's, nor are emulated machines: environments that tests make share the user's own cache,
    # where pip would follow the next variable.
    if sys.platform == "linux":
        own = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        os.environ.setdefault("PIP_CACHE_DIR", os.path.join(own, "pip"))
        os.environ.setdefault("EMULATED_FOLDER", os.path.join(own, "oplet-emulated"))  # see scripts/emulated
    folder = tempfile.mkdtemp(prefix="oplet-tests-caches-")
    os.environ["XDG_CACHE_HOME"] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.fixture(autouse=True, scope="session")
def oplet_of_an_index() -> Iterator[None]:
    """Messages advise packages as they do where oplet came from an index; tests/repository/test_advice_in_a_clone.py has the others."""
    from oplet.plugins import install_commands, known_packages

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(install_commands, "_direct_url", lambda: "")
        patch.setattr(known_packages, "NAMES_ARE_OURS", True)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Leave what collecting makes, the tests themselves, to no garbage collection, then or later: many tests ask for one, and time it."""
    gc.disable()
    result = yield
    gc.enable()
    gc.collect()
    gc.freeze()
    return result
