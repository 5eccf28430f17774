"""Storage of the results of rows as they arrive.

Here are their formats, the folder in which an interrupted run waits to be resumed, and the final file made of it.
"""
