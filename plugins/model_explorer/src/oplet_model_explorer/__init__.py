"""Google's Model Explorer extensions that show models as oplet runs them.

`model-explorer model.tflite --extensions=oplet_model_explorer` loads the module `main` of this package, which brings the two extensions. The
functions here make the same graphs and node data without Model Explorer, as the JSON that it opens.
"""

from __future__ import annotations

from oplet_model_explorer.graphs import DELEGATES_VARIABLE, explored_graphs
from oplet_model_explorer.overlays import node_data, save_node_data

__all__ = ["DELEGATES_VARIABLE", "explored_graphs", "node_data", "save_node_data"]
