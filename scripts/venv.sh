# Sourced: make the virtual environment $venv if it is not there, and give `install`, which installs into it, and `install_known`,
# which takes the versions of constraints.txt where the index has them all. Python compiles what it imports: pip would compile all.
# Debian keeps pip's bundle for new environments in a package of its own; without it the system's pip serves them.
python=${PYTHON:-python3}
if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv" >/dev/null 2>&1 || { rm -rf "$venv"; "$python" -m venv --without-pip "$venv"; }
fi
install() {
    if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        "$venv/bin/python" -m pip install --no-compile ${quiet:---quiet} --disable-pip-version-check "$@"
    else
        "$python" -m pip --python "$venv/bin/python" install --no-compile ${quiet:---quiet} --disable-pip-version-check "$@"
    fi
}
install_known() {
    install "$@" -c constraints.txt && return
    echo "$0: not all versions of constraints.txt can be had here; the bounds in the requirements alone hold" >&2
    install "$@"
}
