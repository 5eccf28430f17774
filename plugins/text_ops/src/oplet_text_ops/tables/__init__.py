"""Tables stored as bytes in models: vocabularies, tries, normalization rules. All reads are bounds-checked.

flat_table      tables in the FlatBuffers format
double_array    tries in Darts-clone's format
"""
