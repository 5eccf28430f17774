"""Builds and selections: wheels, programs and resolvers of just the operators that models need.

Commands `oplet build` and `oplet select`; `building` makes wheels and programs, `selection` finds and locks what models need, `standalone`
is the program that a build with the core runs, and `bundle` its plugin manager.
"""
