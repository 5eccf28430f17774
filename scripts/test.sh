#!/bin/sh
# From a fresh clone to a verdict: install everything editable into .venv-test, then lint, type-check and test.
# usage: sh scripts/test.sh [PYTEST ARGUMENTS]
# OPLET_REQUIREMENTS names one more file of requirements, for tests that are skipped without.
set -eu
cd "$(dirname "$0")/.."
venv=${OPLET_VENV:-.venv-test}
. scripts/venv.sh
install_known -r requirements-dev.txt ${OPLET_REQUIREMENTS:+-r "$OPLET_REQUIREMENTS"}
bin=$venv/bin
"$bin/ruff" check .
"$bin/ruff" format --check .
"$bin/mypy"
exec "$bin/python" -m pytest -n "${OPLET_TEST_PROCESSES:-2}" "$@"
