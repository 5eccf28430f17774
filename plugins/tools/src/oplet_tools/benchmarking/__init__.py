"""Time and memory: repeated runs, profiles of nodes, comparison with LiteRT. Modules here measure, or show what was measured."""
