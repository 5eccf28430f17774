"""A program in this process, with whatever interpreter it finds; what it answers goes into FILE.npz.

usage: oplet behind plain.py PROGRAM FILE.npz
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np
from child import PROGRAMS

with tempfile.TemporaryDirectory() as made:
    np.savez(sys.argv[2], **PROGRAMS[sys.argv[1]](made))
