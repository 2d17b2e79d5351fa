#!/usr/bin/env bash
# Records one kernel three times, on the lab, under the user-mode emulator and instrumented, and
# prints how much the recordings differ, array by array and page by page: sum of |a - b| over the
# pages, in percent of the sum of a. docs/lab.md explains what is left. Usage: scripts/agreement.sh
# [KERNEL [CLASS [THREADS]]]; $HOMENODE names another command, $KEEP a folder for the recordings.
set -euo pipefail
cd "$(dirname "$0")/.."
kernel=${1:-nas-cg} class=${2:-W} threads=${3:-4}
homenode=$(realpath "${HOMENODE:-target/release/homenode}")
machine=$PWD/tests/lab/l2-256k.toml
work=${KEEP:-$(mktemp -d)}
if [ -z "${KEEP:-}" ]; then trap 'rm -rf "$work"' EXIT; fi
mkdir -p "$work"
cd "$work"
# Threads stay where they are, and wait asleep: both change what is counted.
export OMP_PROC_BIND=true OMP_WAIT_POLICY=passive
what=(kernel:"$kernel" --class "$class" --threads "$threads")
OMP_PLACES=threads "$homenode" record --quiet --on lab --machine "$machine" --no-cwd --numa-balancing off --thp never \
    --force -o lab.hnrec "${what[@]}" </dev/null
# The filter lets through what the cache's sets could tell apart.
unset OMP_PROC_BIND
"$homenode" record --quiet --on emulator --filter 256 --force -o emulator.hnrec "${what[@]}" </dev/null
"$homenode" record --quiet --filter 256 --force -o instrumented.hnrec "${what[@]}" </dev/null
for pair in "instrumented emulator" "instrumented lab" "emulator lab"; do
    read -r a b <<<"$pair"
    "$homenode" rec agree "$a.hnrec" "$b.hnrec" -m "$machine"
    echo
done
