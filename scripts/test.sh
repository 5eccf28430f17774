#!/bin/sh
# From a fresh clone to a verdict: install the packages whose engines are small, editable, into .venv-test, then lint, check types and
# run the units. It ends with what it did not run.
# usage: sh scripts/test.sh [PYTEST ARGUMENTS]
# OPLET_REQUIREMENTS names other files of requirements: "requirements-dev.txt requirements-tensorflow.txt" is what .ci/run installs.
set -eu
cd "$(dirname "$0")/.."
venv=${OPLET_VENV:-.venv-test}
requirements=${OPLET_REQUIREMENTS:-requirements-test.txt}
. scripts/steps.sh
# The first minutes are pip's, which says what it collects: a script that says nothing looks as if it hung.
quiet="--progress-bar off"
[ -x "$venv/bin/python" ] || echo "$(now): making $venv of $requirements (requirements-test.txt: 0.5 GB and some minutes)" >&2
. scripts/venv.sh
files=
for file in $requirements; do files="$files -r $file"; done
environment() {
    # shellcheck disable=SC2086 # each is a word of its own
    install_packages $files
    # What compiled the kernels has done so; no requirement here names it.
    [ "$requirements" != requirements-test.txt ] || pip uninstall --quiet --yes numba llvmlite ziglang
}
step environment environment
bin=$venv/bin
step lint "$bin/ruff" check --quiet .
step format "$bin/ruff" format --check --quiet .
step types "$bin/mypy"
echo "$(now): tests, ${OPLET_TEST_PROCESSES:-2} at once" >&2
# Without all requirements some packages are not there.
[ "$requirements" != requirements-test.txt ] || set -- --installed "$@"
# shellcheck disable=SC2086
exec "$bin/python" -m pytest -n "${OPLET_TEST_PROCESSES:-2}" --dist worksteal --durations-log=durations.jsonl $took "$@"
