#!/usr/bin/env bash
# Runs every kernel in every class (or those named: scripts/all-classes.sh THREADS CLASS…) and
# prints a line each as CSV: what it said of its result, its exit status and its elapsed seconds.
# Ends with 1 if one of them failed. Class B takes half an hour.
set -u
cd "$(dirname "$0")/.." || exit 2
homenode=${HOMENODE:-target/release/homenode}
threads=${1:-2}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- S W A B
kernels=$("$homenode" kernel list --csv | tail -n +2 | cut -d, -f1) || exit 2
failed=0
echo "kernel,class,threads,status,seconds,verification"
for class in "$@"; do
  for kernel in $kernels; do
    begin=$(date +%s.%N)
    said=$("$homenode" kernel run "$kernel" --class "$class" --threads "$threads" 2>&1)
    status=$?
    seconds=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    line=$(grep -i verif <<< "$said" | tail -n 1 | tr -s ' ' | tr -d '"')
    echo "$kernel,$class,$threads,$status,$seconds,\"$line\""
    [ "$status" -eq 0 ] || failed=1
  done
done
exit $failed
