#!/bin/sh
# Install what the peer tests talk to: two major versions of the MCP Python SDK, and servers from PyPI and npm.
# Each has an environment of its own; they are made side by side.
set -u
cd "$(dirname "$0")/.."

python_peers() {
    scripts/environment.sh ".env-$1" peers "tests/peers/py-$1.txt" -- -r "tests/peers/py-$1.txt"
}

python_peers sdk1 &
first=$!
python_peers sdk2 &
second=$!
scripts/npm-peers.sh
status=$?
wait "$first" && wait "$second" && exit "$status"
exit 1
