"""`oplet new-op` and `oplet new-delegate`: new packages, written from templates. The templates are beside the code that fills them."""
