"""Non-maximum suppression for NON_MAX_SUPPRESSION_V4, _V5 and TFLite_Detection_PostProcess: of overlapping boxes, the best is
kept.
"""
