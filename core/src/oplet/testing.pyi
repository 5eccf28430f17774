# For type checkers; at run time the package oplet-testing brings this module (oplet.companions).
from oplet_testing import *  # noqa: F403
