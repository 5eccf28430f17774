# Sourced: `step NAME COMMAND ...` says what begins and notes what it took in $took, which pytest is told (tests/durations.py).
# Some images set this, which a user's shell does not: every process that a test starts would compile all modules of oplet anew, and
# pytest all tests.
unset PYTHONDONTWRITEBYTECODE
began=$(date +%s)
took=
now() {
    passed=$(($(date +%s) - began))
    printf '%d:%02d' $((passed / 60)) $((passed % 60))
}
step() {
    name=$1
    shift
    echo "$(now): $name" >&2
    before=$(date +%s)
    "$@"
    took="$took --took=$name=$(($(date +%s) - before))"
}
