"""What a model's file says of its model: TFLITE_METADATA, ultralytics' metadata.json, and the files attached to it; read, written, applied.

`reading` and `writing` are the API, `tables` the classes of the schema. Files are read only where a command needs them, checked as the
model is, and with limits of their own.
"""
