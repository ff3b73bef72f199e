#!/bin/sh
# Install the public MCP servers from npm that the peer tests talk to, or leave them alone when they are current.
# Without node and npm: say so and go on, but fail where CI=true, where a test that did not run would go unseen.
set -eu
cd "$(dirname "$0")/../tests/peers"

if ! node --version >/dev/null 2>&1 || ! npm --version >/dev/null 2>&1; then
    echo "node and npm (Node.js 20 or newer) are missing: the tests with servers from npm will be skipped" >&2
    [ "${CI:-}" = true ] && exit 1
    exit 0
fi

want=$(cat package.json package-lock.json | cksum)
stamp=node_modules/.installed
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
    exit 0
fi
echo "tests/peers/node_modules: installing (npm)" >&2
npm ci --no-audit --no-fund --loglevel=error >/dev/null </dev/null
echo "$want" >"$stamp"
