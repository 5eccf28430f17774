"""`oplet behind`: programs that were written for LiteRT run unmodified on oplet. What comes in intercepts their imports, or starts them."""
