#!/bin/sh
# The tests of the HTML page open it in a real browser. Where there is none and this is root on Debian or a relative of
# it, install Chromium; elsewhere say how to get one and go on, but fail where CI=true, where a test that did not run
# would go unseen.
set -eu
cd "$(dirname "$0")/.."

found() {
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" >/dev/null 2>&1 && return 0
    done
    for path in "/Applications/Chromium.app" "/Applications/Google Chrome.app"; do
        [ -d "$path" ] && return 0
    done
    return 1
}

if found; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && [ "${CI:-}" = true ]; then
    echo "chromium: installing (apt-get)" >&2
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium \
        fonts-dejavu-core >/dev/null </dev/null || true
    if found; then
        exit 0
    fi
fi
echo "Chromium is missing: the tests that open the HTML page in a browser will be skipped (Debian: apt-get install chromium)" >&2
[ "${CI:-}" = true ] && exit 1
exit 0
