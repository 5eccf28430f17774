"""What the values of tensors mean to people: real numbers in and out, the tensors' own integers on request.

`scaling` is the arithmetic, `fitting` the rule for values that come in, `notices` what is told about them.
"""
