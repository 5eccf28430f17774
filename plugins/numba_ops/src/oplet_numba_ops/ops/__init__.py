"""The overridden operators, one module each, named like the operator. A module binds nodes to kernels of the other rooms and
defines its `REGISTRATION`.
"""

from oplet_numba_ops.compiling.configuring import import_numba

import_numba()  # before an operator's module does
