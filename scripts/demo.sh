#!/usr/bin/env bash
# A program with one wrong line, explained; two of the papers' programs, recorded once each and
# simulated under every placement on the papers' machine; and a third, whose pages move on an
# emulated machine with four nodes. At the end, report.html shows the first program's pages, without
# and with moves. Needs target/release/homenode; "make demo" builds it first.
set -euo pipefail
cd "$(dirname "$0")/.."

homenode=target/release/homenode
[ -x "$homenode" ] || { echo "demo: $homenode is missing; run 'make demo'" >&2; exit 1; }

explained=$(mktemp -d)
trap 'rm -rf "$explained"' EXIT
cp tests/explain/serial_first_touch.c "$explained/stencil.c"
printf '\n$ homenode-cc -g -O2 -fopenmp stencil.c -o stencil\n$ homenode explain --keep . -- ./stencil 8192\n\n'
here=$PWD
(cd "$explained" && "$here/target/release/homenode-cc" -g -O2 -fopenmp stencil.c -o stencil &&
    "$here/$homenode" explain --keep . -- ./stencil 8192)

# The last step, whatever part of the demonstration comes before it.
report() {
    printf '\n$ homenode view explained.hnrec --against next-touch -o report.html\n\n'
    "$homenode" view "$explained/explained.hnrec" --against next-touch --source "$explained" -o report.html
    printf 'open report.html in a browser: which array is wrong, who uses it, what moved, whether it paid\n'
}

for kernel in nas-cg nas-mg; do
    printf '\n$ homenode compare kernel:%s --class W --machine sf15k\n\n' "$kernel"
    "$homenode" compare "kernel:$kernel" --class W --machine sf15k
done

# On a machine with four nodes, which is emulated: the same program, initialised by one thread,
# without and with homenode.
lacking=
for tool in qemu-system-x86_64 busybox gcc; do command -v "$tool" >/dev/null || lacking="$lacking $tool"; done
if [ -n "$lacking" ]; then
    printf '\nskipped: moving pages on four nodes needs%s\n' "$lacking"
    report
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$explained" "$work"' EXIT
gcc -O2 -shared -fPIC -o "$work/homes.so" tests/lab/homes.c
sources=(kernels/heat/main.c)
for name in dense fourier memory options report nas_random pairs places no_homenode; do
    sources+=("kernels/common/$name.c")
done
gcc -O2 -g -fopenmp -std=c11 -Ikernels/common -Iinclude -o "$work/heat" "${sources[@]}" -lm -ldl
heat="./heat --size 1024 --iterations 40 --threads 4 --init serial"
# An emulated CPU takes milliseconds to touch an armed page, so the default budget would not do.
budget="--budget 90%+100s"
cat >"$work/script" <<SCRIPT
set -e
export HOMES_OF=heat LD_PRELOAD=$work/homes.so
HOMES=without $heat >/dev/null
HOMES=with $here/$homenode run $budget -- $heat
SCRIPT
printf '\n$ homenode lab run -- sh -c "%s; homenode run %s -- %s"\n\n' "$heat" "$budget" "$heat"
(cd "$work" && "$here/$homenode" lab run --accel tcg --mem 192M --numa-balancing off --thp never --env OMP_PROC_BIND=true \
    --env OMP_PLACES=threads --with "$here/$homenode" --with "$here/target/release/libhomenode.so" -- sh script)
# A line an array: when, bytes, number, address, offset, then node and pages in turns.
for how in without with; do
    awk -v how="$how" '{ for (i = 6; i < NF; i += 2) if ($i >= 0) pages[$i] += $(i + 1) }
        END { printf "pages of the grids, by node, %7s homenode run: %d %d %d %d\n", how, pages[0], pages[1], pages[2], pages[3]
              # Alone all are on the first node; what homenode does not spread it has not moved.
              for (n = 0; n < 4; n++) if (how == "with" ? pages[n] < 500 || pages[n] > 1500 : (pages[n] > 0) != (n == 0)) exit 1 }' \
        "$work/$how"
done
report
