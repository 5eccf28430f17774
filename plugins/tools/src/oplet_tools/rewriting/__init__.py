"""`oplet rewrite`: changes to a model, such as lower op versions, stripping, or another batch size. What comes in turns one model into another."""
