"""What holds in all tests: nothing depends on how fast the machine is, and no package's tests are missed without a word."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.every_package"]

settings.register_profile("oplet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("oplet")
