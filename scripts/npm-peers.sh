#!/bin/sh
# Install what the peer tests need from npm, or leave it alone when it is current: public MCP servers and the TypeScript
# SDKs (tests/peers), the official conformance suite and a Node.js for it (tests/conformance).
# Without node and npm: say so and go on, but fail where CI=true, where a test that did not run would go unseen.
set -eu
cd "$(dirname "$0")/../tests"

if ! node --version >/dev/null 2>&1 || ! npm --version >/dev/null 2>&1; then
    echo "node and npm (Node.js 20 or newer) are missing: the tests with servers from npm will be skipped" >&2
    [ "${CI:-}" = true ] && exit 1
    exit 0
fi

for folder in peers conformance; do
    want=$(cat "$folder/package.json" "$folder/package-lock.json" | cksum)
    stamp=$folder/node_modules/.installed
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
        continue
    fi
    echo "tests/$folder/node_modules: installing (npm)" >&2
    (cd "$folder" && npm ci --no-audit --no-fund --loglevel=error >/dev/null </dev/null)
    echo "$want" >"$stamp"
done
