"""Non-maximum suppression: of boxes that overlap, the one with the highest score is kept. What comes in serves
NON_MAX_SUPPRESSION_V4, _V5 or TFLite_Detection_PostProcess.
"""
