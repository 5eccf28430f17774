"""What is told of a model and of its runs: dictionaries of details, who serves which node and why, profiles, errors that name a node.
What comes in looks and changes nothing.
"""
