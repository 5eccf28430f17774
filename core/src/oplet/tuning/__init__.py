"""The choice between engines: every way that is installed of running a model is measured, and the fastest is remembered.

`candidates` says which ways there are, `measuring` runs them in turn, `errors` says how far their answers are apart,
`choosing` takes one, and `remembering` keeps it in a file for the next time.
"""
