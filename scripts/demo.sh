#!/usr/bin/env bash
# Two of the papers' programs, recorded once each and simulated under every placement on the papers' machine.
# Needs target/release/homenode; "make demo" builds it first.
set -euo pipefail
cd "$(dirname "$0")/.."

homenode=target/release/homenode
[ -x "$homenode" ] || { echo "demo: $homenode is missing; run 'make demo'" >&2; exit 1; }

for kernel in nas-cg nas-mg; do
    printf '\n$ homenode compare kernel:%s --class W --machine sf15k\n\n' "$kernel"
    "$homenode" compare "kernel:$kernel" --class W --machine sf15k
done
