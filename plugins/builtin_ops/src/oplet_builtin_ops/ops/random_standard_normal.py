"""RANDOM_STANDARD_NORMAL: normally distributed floats with mean 0 and standard deviation 1.

Numerics: tflite/kernels/random_ops.cc, see `oplet_builtin_ops.control.philox`.
"""

from __future__ import annotations

from functools import partial

from oplet import Registration
from oplet_builtin_ops.control.philox import normal_floats
from oplet_builtin_ops.control.randoms import SHAPES, bind_random, prepare_random

REGISTRATION = Registration(prepare=prepare_random, bind=partial(bind_random, convert=normal_floats), types=SHAPES)
