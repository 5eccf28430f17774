"""A clock of its own for a process that measures engines: what is the fastest does not depend on the machine's load."""

from __future__ import annotations

__all__ = ["OWN_CLOCK"]

#: Put in front of a made-up plugin's source: in the process that measures, only `time.sleep` takes time, and a look at the clock a bit.
OWN_CLOCK = """
import sys
import time

if "oplet_tools.tuning.child.measuring" in sys.modules:
    from oplet_tools.tuning import timed_interpreter

    now = 0.0

    def sleep(seconds):
        global now
        now += seconds

    def look():
        sleep(1e-6)
        return now

    time.sleep, time.perf_counter = sleep, look
    timed_interpreter._waited = lambda: 0.0
"""
