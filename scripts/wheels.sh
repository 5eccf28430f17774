#!/bin/sh
# Wheels of every package of this repository, so that pip finds them by name without an index:
#     sh scripts/wheels.sh && export PIP_FIND_LINKS="$PWD/wheels"
# usage: sh scripts/wheels.sh [FOLDER [OPTIONS OF PIP WHEEL]]
set -eu
folder=$(mkdir -p "${1:-wheels}" && cd "${1:-wheels}" && pwd)
[ $# -eq 0 ] || shift
cd "$(dirname "$0")/.."
"${PYTHON:-python3}" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$folder" "$@" ./core ./plugins/*/ ./metapackage
# For pip install --constraint, as messages advise it: each package of these is its wheel here, and others are an index's.
"${PYTHON:-python3}" - "$folder" << 'END'
import pathlib, sys
wheels = sorted(pathlib.Path(sys.argv[1]).glob("oplet*.whl"), key=lambda wheel: wheel.stat().st_mtime)
newest = {wheel.name.split("-")[0].replace("_", "-"): wheel for wheel in wheels}
wheels[0].with_name("constraints.txt").write_text("".join(f"{name} @ {wheel.as_uri()}\n" for name, wheel in sorted(newest.items())))
END
ls "$folder"
