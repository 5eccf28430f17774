"""Results of rows, kept as they come. Here are their formats, the folder in which an interrupted run waits to be continued, and what is made
of it in the end.
"""
