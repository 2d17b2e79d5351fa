#!/bin/sh
# Makes crates/view/assets from viewer/: type check, bundle, hashes. Needs node and npm; a build
# with cargo does not. 'scripts/viewer.sh FOLDER' writes them elsewhere.
set -eu
cd "$(dirname "$0")/../viewer"
[ -d node_modules ] && [ node_modules/.package-lock.json -nt package-lock.json ] ||
    npm ci --no-audit --no-fund >&2
npx --no-install tsc --noEmit
node build.mjs "$@"
