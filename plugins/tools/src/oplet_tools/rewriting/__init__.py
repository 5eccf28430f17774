"""`oplet rewrite`: changes to a model, such as lower op versions, stripping, or another batch size. Modules here turn one model
into another.
"""
