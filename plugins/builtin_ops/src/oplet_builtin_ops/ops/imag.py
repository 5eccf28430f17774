"""IMAG: the imaginary part of complex numbers. Numerics: tflite/kernels/complex_support.cc"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.complex_parts import complex_part_registration

REGISTRATION = complex_part_registration(lambda source, output: np.copyto(output, source.imag))
