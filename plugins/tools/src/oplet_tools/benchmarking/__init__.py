"""Time and memory: repeated runs, profiles of nodes, comparison with LiteRT. What comes in measures, or shows what was measured."""
