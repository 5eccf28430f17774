"""How Hypothesis behaves in all tests: nothing depends on how fast the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("oplet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("oplet")
