#!/bin/sh
# Makes crates/view/assets from viewer/: type check, bundle, hashes. Needs node and npm; a build
# with cargo does not. 'scripts/viewer.sh FOLDER' writes them elsewhere.
set -eu
cd "$(dirname "$0")/../viewer"
if [ -z "$(find node_modules/.package-lock.json -newer package-lock.json 2>/dev/null)" ]; then
    npm ci --no-audit --no-fund >&2
fi
npx --no-install tsc --noEmit
node build.mjs "$@"
