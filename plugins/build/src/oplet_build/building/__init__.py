"""Wheels and programs that hold only the kernels that models need (`oplet build`). Here the providers are chosen; `cutting` extracts their code,
and `packing` writes the files.
"""
