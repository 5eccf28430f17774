"""Stored plans: what was prepared and bound for a model, on disk, for the next process that opens it. `stored_plan` makes facts and memory of
a plan and a plan of these, `dependencies` tells what it depends on besides the model, and `plan_files` keeps the files.
"""
