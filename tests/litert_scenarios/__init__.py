"""The scenarios of LiteRT's own delegate and partition tests, stated again for oplet."""
