"""Every operator with every element type, rank and emptiness: wherever LiteRT runs one, oplet does."""
