#!/bin/sh
# From a fresh clone to the documentation site, in build/site: an environment in .venv-site, then mkdocs, which fails at any warning.
# usage: sh scripts/site.sh [ARGUMENTS OF mkdocs build], or OPLET_SITE_COMMAND="mike deploy ..." sh scripts/site.sh
set -eu
cd "$(dirname "$0")/.."
venv=${OPLET_VENV:-.venv-site}
. scripts/venv.sh
install_known -e ./core -e ./plugins/predictor -e ./plugins/testing -e ./plugins/tools -e ./plugins/build -r requirements-site.txt
# The theme and a plugin print what they think of each other's futures.
export NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true
PATH=$PWD/$venv/bin:$PATH PYTHONPATH=$PWD exec "$venv/bin/python" -m ${OPLET_SITE_COMMAND:-mkdocs build} "$@"
