"""Apache Beam's RunInference with .tflite models.

`OpletModelHandler` is what RunInference takes; a pipeline needs nothing else of this package. `OpletModel` is what the handler loads.
"""

from __future__ import annotations

from oplet_beam.handler import OpletModelHandler
from oplet_beam.loaded import OpletModel

__all__ = ["OpletModel", "OpletModelHandler"]
