"""New packages of operators and delegates, written from templates. The templates lie beside the code that fills them."""
