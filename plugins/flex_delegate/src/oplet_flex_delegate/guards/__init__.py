"""Protection against hostile models: checks before TensorFlow runs an operator.

`served` and `dangers` say which operators run at all. `guard` looks at one node's inputs each time, with `conditions` of what ends the
process, and with `sizes`, `text_sizes` and `images` of what outputs will take.
"""
