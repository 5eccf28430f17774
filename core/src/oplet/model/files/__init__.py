"""Files of models and files beside them: which ones are opened, how they are mapped, and how they are replaced as a whole. What comes in knows
paths and bytes, and no table.
"""
