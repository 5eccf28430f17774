"""What is told of a model without running it: its contents, its versions, who serves it, what is missing. What comes in reads a model and
returns data.
"""
