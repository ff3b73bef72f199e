#!/bin/sh
# Make a virtual environment, or leave it alone when it works and its inputs are unchanged.
#
#   environment.sh DIR STAGE INPUT... -- PIP-ARGUMENT...
#
# The stage's stamp in DIR holds the checksum of the INPUT files and of the arguments. Another checksum for a stage
# that was installed, or an interpreter that does not start, means: remove DIR and make it again.
set -eu
here=$(dirname "$0")
dir=$1 stage=$2
shift 2
inputs=''
while [ "$1" != -- ]; do
    inputs="$inputs $1"
    shift
done
shift

stamp=$dir/.installed-$stage
# shellcheck disable=SC2086  # a list of file names without spaces
want=$({ cat $inputs; echo "$@"; } | cksum)

works() { "$dir/bin/python" -c 'import pip' >/dev/null 2>&1; }
if works && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
    exit 0
fi
if [ -d "$dir" ] && { [ -f "$stamp" ] || ! works; }; then
    echo "$dir: out of date or broken, making it again" >&2
    rm -rf "$dir"
fi
if [ ! -d "$dir" ]; then
    python=$("$here/find-python.sh")
    echo "$dir: a virtual environment with $("$python" --version)" >&2
    "$python" -m venv "$dir"
fi
echo "$dir: installing ($stage), this takes up to a minute" >&2
# Twice quiet: warnings about the user's own pip configuration are not about this project; errors still show.
# Modules are compiled when they are first imported, as most of mitmproxy never is: that saves a third of the time.
"$dir/bin/python" -m pip install -qq --no-compile --disable-pip-version-check "$@"
echo "$want" >"$stamp"
