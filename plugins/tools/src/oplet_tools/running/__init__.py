"""One run of a model: inputs from files, pictures or random numbers, the call, and the outputs.

Modules here serve `oplet run` and every other command that takes inputs. Conversions of values are in `values`.
"""
