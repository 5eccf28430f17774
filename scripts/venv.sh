# Sourced: make the virtual environment $venv if it is not there, and give `install`, which installs into it, `install_known`,
# which takes the versions of constraints.txt where the index has them all, and `install_packages`, which does so for packages of this
# repository, whichever. Python compiles what it imports: pip would compile all.
# Debian keeps pip's bundle for new environments in a package of its own; without it the system's pip serves them.
python=${PYTHON:-python3}
if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv" >/dev/null 2>&1 || { rm -rf "$venv"; "$python" -m venv --without-pip "$venv"; }
fi
pip() {
    if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        "$venv/bin/python" -m pip "$@"
    else
        "$python" -m pip --python "$venv/bin/python" "$@"
    fi
}
install() { pip install --no-compile ${quiet:---quiet} --disable-pip-version-check "$@"; }
install_known() {
    install "$@" -c constraints.txt && return
    echo "$0: not all versions of constraints.txt can be had here; the bounds in the requirements alone hold" >&2
    install "$@"
}
# What builds the packages comes first, so that pip does not make an environment for each to be built in. numba and ziglang compile
# the kernels of oplet-compiled-ops; they have half a gigabyte.
install_packages() {
    install_known "hatchling>=1.27,<2" editables "numba>=0.61,<0.70" "ziglang>=0.13,<1" -e ./core &&
        install_known --no-build-isolation "$@"
}
