"""`oplet select`: the ops that models need, a generated resolver that registers only these, and a lock file. What comes in reads models and
plugins, or writes one of these files.
"""
