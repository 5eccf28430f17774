"""The custom operators of LiteRT's built-in resolver, one module each."""
