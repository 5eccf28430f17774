"""Runs MediaPipe's ImageEmbedder, in the environment of `scripts/programs.sh`: python mediapipe_child.py MODEL PICTURE FILE.npy."""

import sys

import numpy as np
from mediapipe import Image
from mediapipe.tasks.python import vision
from mediapipe.tasks.python.core.base_options import BaseOptions

model, picture, file = sys.argv[1:]
options = vision.ImageEmbedderOptions(base_options=BaseOptions(model_asset_path=model))
with vision.ImageEmbedder.create_from_options(options) as embedder:
    np.save(file, embedder.embed(Image.create_from_file(picture)).embeddings[0].embedding)
