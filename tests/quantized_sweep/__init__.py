"""Quantized nets with dead parts, made by the thousand and compared with LiteRT's three ways."""
