"""Wheels and programs that hold just what models need. `cutting` takes code apart, `packing` puts what is left into files; here it is decided
what goes in.
"""
