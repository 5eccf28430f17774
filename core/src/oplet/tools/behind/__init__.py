"""Programs that were written for LiteRT, run unmodified on oplet. What comes in answers their imports, or starts them."""
