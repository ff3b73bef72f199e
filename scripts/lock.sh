#!/bin/sh
# Resolve the newest versions that fit and write them down: constraints.txt, tests/peers/py-*.txt, package-lock.json.
# Run it by hand, run the tests, commit the result.
set -eu
cd "$(dirname "$0")/.."
python=$(scripts/find-python.sh)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# freeze FILE HEADING REQUIREMENT...: what a fresh environment with these holds, by name and version only.
freeze() {
    file=$1 heading=$2
    shift 2
    rm -rf "$scratch/env"
    "$python" -m venv "$scratch/env"
    "$scratch/env/bin/python" -m pip install -qq --disable-pip-version-check "$@"
    { echo "# $heading Written by scripts/lock.sh."; "$scratch/env/bin/python" -m pip freeze --exclude mcpsniff; } >"$file"
}

# shellcheck disable=SC2046  # one requirement per word
freeze constraints.txt "The versions that this project is tested with." . $("$python" scripts/dev_requirements.py dev)
freeze tests/peers/py-sdk1.txt "The MCP Python SDK 1.x, as a client." "mcp<2"
freeze tests/peers/py-sdk2.txt "The MCP Python SDK 2.x, as a client, and two servers built on it." \
    "mcp>=2" mcp-server-git mcp-server-time
"$python" scripts/npm-lock.py
