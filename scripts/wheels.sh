#!/bin/sh
# Wheels of every package of this repository, so that pip finds them by name without an index:
#     sh scripts/wheels.sh && export PIP_FIND_LINKS="$PWD/wheels"
# usage: sh scripts/wheels.sh [FOLDER [OPTIONS OF PIP WHEEL]]
set -eu
folder=$(mkdir -p "${1:-wheels}" && cd "${1:-wheels}" && pwd)
[ $# -eq 0 ] || shift
cd "$(dirname "$0")/.."
"${PYTHON:-python3}" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$folder" "$@" ./core ./plugins/*/ ./metapackage
ls "$folder"
