"""`oplet behind`: programs that were written for LiteRT run unmodified on oplet. Modules here intercept their imports, or start
them.
"""
