#!/bin/sh
# From a fresh clone to an answer: install oplet into .venv and let the int8 digit classifier look at a picture.
# usage: sh scripts/demo.sh [PICTURE]
set -eu
cd "$(dirname "$0")/.."
venv=${OPLET_VENV:-.venv}
. scripts/venv.sh
install ./core ./plugins/predictor ./plugins/tools ./plugins/builtin_ops
exec "$venv/bin/oplet" run examples/digits/digits_int8.tflite --input "${1:-examples/digits/pictures/7.png}" \
    --labels examples/digits/labels.txt --top 3
