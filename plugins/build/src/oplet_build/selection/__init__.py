"""`oplet select`: the ops that models need, a generated resolver that registers only these, and a lock file.

Modules here read models and plugins, or write one of these files.
"""
