#!/bin/sh
# Print the path of a CPython >= 3.12 that can make virtual environments; exit 2 and say what is missing if there is none.
# $PYTHON, when set, is taken or refused, never replaced. Otherwise: 3.13, then newer, then 3.12.
set -u

# The interpreter's own path, if it runs, is new enough and can make a virtual environment with pip in it. A pyenv shim
# is on PATH for every version and fails for those not selected, so "found on PATH" proves nothing: run it.
usable() {
    "$1" -c '
import sys
assert sys.version_info >= (3, 12)
import ensurepip, ssl, venv
print("%d.%d %s" % (*sys.version_info[:2], sys.executable))
' 2>/dev/null </dev/null
}

candidates() {
    for name in python3.13 python3.14 python3.15 python3.16 python3.12 python3 python; do
        command -v "$name" 2>/dev/null
    done
    home=${HOME:-/nonexistent}
    for python in \
        "${PYENV_ROOT:-$home/.pyenv}"/versions/*/bin/python \
        "$home"/.pyenv/versions/*/bin/python \
        "$home"/.asdf/installs/python/*/bin/python \
        "$home"/.local/share/mise/installs/python/*/bin/python; do
        [ -x "$python" ] && echo "$python"
    done
    command -v uv >/dev/null 2>&1 && uv python find --no-project '>=3.12' 2>/dev/null </dev/null
}

if [ -n "${PYTHON:-}" ]; then
    found=$(usable "$PYTHON") || {
        echo "PYTHON=$PYTHON is not a working Python >= 3.12 with the venv and ensurepip modules" >&2
        exit 2
    }
    echo "${found#* }"
    exit 0
fi

best='' best_rank=0
found=$(candidates | while read -r python; do usable "$python"; done)
while read -r version path; do
    case $version in
        3.13) rank=3 ;;
        3.12) rank=1 ;;
        3.*) rank=2 ;;
        *) continue ;;
    esac
    if [ "$rank" -gt "$best_rank" ]; then
        best=$path best_rank=$rank
    fi
done <<END
$found
END

if [ -z "$best" ]; then
    {
        echo "mcpsniff needs Python 3.12 or newer with the venv and ensurepip modules, and found none."
        echo "Looked at: python3.N and python3 on PATH, pyenv, asdf, mise and uv. Python on PATH: $(python3 --version 2>&1)"
        echo "Install one (pyenv install 3.13; uv python install 3.13; apt install python3 python3-venv; brew install python@3.13)"
        echo "or say where it is: make PYTHON=path/to/python3.13 ..."
    } >&2
    exit 2
fi
echo "$best"
