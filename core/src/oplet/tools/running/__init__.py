"""One run of a model: values from files, pictures or chance, the call, and what becomes of the outputs. What comes in is used by `oplet run`
and by every other command that needs inputs.
"""
