"""Two numbers without scales, or as tables tell them: comparisons, arithmetic of integers, logic and divisions. What comes in takes
the patterns in which an operand repeats from `plain_pairs`.
"""
