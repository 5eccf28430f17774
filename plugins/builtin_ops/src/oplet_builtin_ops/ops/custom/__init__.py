"""The custom operators that LiteRT's built-in resolver brings, one module each."""
