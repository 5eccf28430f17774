"""One module for each operator. It is named as the operator is, and imported when a model needs it."""
