"""`oplet native`: packages of C and C++ operators, and the flags to compile them.

`app` is what typer makes commands of; `scaffold` writes the packages, out of `template`.
"""
