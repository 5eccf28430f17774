"""Runs a task of MediaPipe in the environment of `scripts/programs.sh`: python mediapipe_child.py TASK MODEL PICTURE [LOCALE [THRESHOLD]].

It prints JSON: the vector of `embed`; index, label, label in the language and score of what `classify` finds; label, label in the language,
score and box (left, top, width, height) of what `detect` finds, which does not take the least score from metadata, but from its options.
"""

import json
import sys

from mediapipe import Image
from mediapipe.tasks.python import vision
from mediapipe.tasks.python.core.base_options import BaseOptions

task, model, picture, locale, threshold = [*sys.argv[1:], "", "0"][:5]
image, base = Image.create_from_file(picture), BaseOptions(model_asset_path=model)
if task == "embed":
    with vision.ImageEmbedder.create_from_options(vision.ImageEmbedderOptions(base_options=base)) as embedder:
        told = embedder.embed(image).embeddings[0].embedding.tolist()
elif task == "classify":
    options = vision.ImageClassifierOptions(base_options=base, display_names_locale=locale or None)
    with vision.ImageClassifier.create_from_options(options) as classifier:
        [head] = classifier.classify(image).classifications
    told = [[each.index, each.category_name, each.display_name, each.score] for each in head.categories]
else:
    # Of MediaPipe 1.2 the detector takes bytes where it says str.
    options = vision.ObjectDetectorOptions(
        base_options=base, display_names_locale=locale.encode() or None, score_threshold=float(threshold)
    )
    with vision.ObjectDetector.create_from_options(options) as detector:
        found = detector.detect(image).detections
    told = []
    for one in found:
        box, [category] = one.bounding_box, one.categories
        sides = [box.origin_x, box.origin_y, box.width, box.height]
        told.append([category.category_name, category.display_name, category.score, sides])
print(json.dumps(told))
