#!/bin/sh
# Fuzz the reader and whole models with atheris, each for so many minutes, beginning with the seed models.
# usage: sh scripts/fuzz.sh [MINUTES] [FOLDER]    what is found goes to FOLDER (fuzz-findings), the corpora as well
set -eu
cd "$(dirname "$0")/.."
venv=${OPLET_VENV:-.venv-test}
. scripts/venv.sh
install_known -r requirements-fuzz.txt
minutes=${1:-10}
folder=${2:-fuzz-findings}
mkdir -p "$folder/fuzz_reader" "$folder/fuzz_model"
"$venv/bin/python" -m fuzz seeds "$folder/seeds"
for target in fuzz_reader fuzz_model; do
    seeds=$folder/seeds
    [ "$target" = fuzz_reader ] || seeds=  # the bytes of its inputs are decisions, not models
    "$venv/bin/python" -m "fuzz.$target" "$folder/$target" $seeds -max_total_time=$((60 * minutes)) -max_len=16384 -timeout=10 \
        -rss_limit_mb=2048 -print_final_stats=1 "-artifact_prefix=$folder/$target-"
done
