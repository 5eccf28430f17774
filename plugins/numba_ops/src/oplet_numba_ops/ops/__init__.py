"""The overridden operators, one module each."""

from oplet_numba_ops.configuring import import_numba

import_numba()  # before one of them does
