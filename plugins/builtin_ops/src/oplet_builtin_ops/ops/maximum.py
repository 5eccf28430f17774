"""MAXIMUM of two tensors, element by element. Numerics: tflite/kernels/maximum_minimum.cc"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.extremum import extremum_registration

REGISTRATION = extremum_registration(np.maximum, np.fmax, np.greater)
