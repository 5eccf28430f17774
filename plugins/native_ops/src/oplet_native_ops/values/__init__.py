"""Values as C has them: numbers of types, strings in one block, options of built-in operators as structs.

Nothing here calls a library.
"""
