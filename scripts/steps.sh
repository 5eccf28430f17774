# Sourced: `step NAME COMMAND ...` says what begins and notes what it took in $took, which pytest is told (tests/durations.py).
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
