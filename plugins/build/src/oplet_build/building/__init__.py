"""Wheels and programs that hold only the kernels that models need (`oplet build`).

Here the source packages are chosen; `cutting` extracts their code, and `packing` writes the files.
"""
