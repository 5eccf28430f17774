"""Predictor: runs a model on many rows, on threads and in processes, in batches where the model gives the same answers for a
batch.

`Predictor` is the class for applications, also reached as `oplet.Predictor`; the other names are for tools that read rows or map items
themselves. `batch_rules` says of each operator how a batch passes through it, and `batch_decision` whether a model can be batched.
`asynchronous` runs models that one delegate runs whole on buffers of the program.
"""

from oplet_predictor.columns import Column
from oplet_predictor.mapping import MapSettings, map_items
from oplet_predictor.pool import Lent, Outcome
from oplet_predictor.predictor import Predictor

__all__ = ["Column", "Lent", "MapSettings", "Outcome", "Predictor", "map_items"]
