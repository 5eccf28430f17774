"""Stand-ins for modules of `ai_edge_litert.tools`, also reached as `oplet.tools`."""
