"""`python -m oplet_litert_shim`: who answers tflite_runtime and ai_edge_litert on this machine."""

from __future__ import annotations

import sys

from oplet_litert_shim.answers import states

if __name__ == "__main__":
    sys.stdout.write("\n".join([*states(), ""]))
