"""Tables that models carry as bytes: vocabularies, tries, rules of normalization. Every read is bounded by the bytes that are there.

flat_table      tables in the FlatBuffers format
double_array    tries in Darts-clone's format
"""
