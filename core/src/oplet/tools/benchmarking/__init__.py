"""Time and memory: repeated runs, profiles of nodes, a rival beside them. What comes in measures, or shows what was measured."""
