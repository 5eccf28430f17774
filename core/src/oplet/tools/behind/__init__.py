"""Programs that were written for LiteRT, run unmodified on oplet: who answers their imports, and who runs them."""
