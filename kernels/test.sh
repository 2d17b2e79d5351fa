#!/bin/sh
# Builds the kernels with each compiler and checks them at the smallest classes.
#
#   kernels/test.sh FOLDER [JOBS]
#
# Builds go to FOLDER/{gcc,clang,listening,tsan}. Exit status 0: all passed; what this machine lacks
# is printed as "skipped: why". CI runs the same. SPDX-License-Identifier: MIT OR Apache-2.0

# Words of a command line split where they stand, and names of files here are our own.
# shellcheck disable=SC2086,SC2012
set -u

[ $# -ge 1 ] || { echo "usage: kernels/test.sh FOLDER [JOBS]   e.g. kernels/test.sh build/kernels 2" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 2
jobs=${2:-2}
failures=0
export OMP_WAIT_POLICY=passive # more threads than cores must not spin
unset LD_LIBRARY_PATH          # cargo names its folders there: programs must find the libraries they were linked with

fail() { failures=$((failures + 1)); echo "FAILED: $*"; }
has() { command -v "$1" >/dev/null 2>&1; }

# build NAME [CMAKE OPTIONS]
build() {
    name=$1; shift
    { cmake -S "$here" -B "$out/$name" "$@" && cmake --build "$out/$name" --parallel "$jobs"; } >"$out/$name.log" 2>&1 &&
        return 0
    fail "the build '$name', see $out/$name.log"
    return 1
}

# Every kernel with the options that change its code path.
runs='nas-cg
nas-cg --init serial --next-touch
nas-mg
nas-mg --init serial --next-touch
nas-mg --init round-robin
nas-ft
nas-ft --init serial --next-touch
nas-bt
nas-bt --init serial --next-touch
nas-sp
nas-sp --init round-robin --next-touch
heat
heat --init serial --next-touch
heat --init round-robin
heat --size 16 --iterations 1000
heat --size 37 --columns 150 --init serial --next-touch
heat --size 150 --columns 37
sor
sor --init serial --next-touch
sor --size 17 --iterations 1
lu --schedule block
lu --schedule cyclic
lu --schedule affinity --padded
lu --schedule affinity --init serial --next-touch
lu --size 129 --iterations 40
false-sharing
false-sharing --padded --init serial --next-touch
splash-fft
splash-fft --init serial --next-touch --iterations 3
splash-fft --size 256 --init round-robin
splash-lu
splash-lu --layout rows --init serial --next-touch
splash-lu --size 144 --iterations 4
splash-radix
splash-radix --size 1001 --init serial --next-touch
splash-water-nsquared --iterations 5
splash-water-nsquared --size 64 --init serial --next-touch
splash-water-spatial --iterations 5
splash-water-spatial --init serial --next-touch --iterations 2
pagerank
pagerank --init serial --next-touch --iterations 3
pic --iterations 5
pic --size 16 --iterations 40 --init serial --next-touch
i-mg --init serial --next-touch
i-cg
i-cg --init serial --next-touch
i-cg --size 4 --init round-robin
i-cg --size 8 --verify order'

bad='--class X
--class
--size 0
--size 99999999999999999999
--class S --size 64
--threads 0
--iterations 1x
--init sometimes
--schedule backwards
--json=yes
--nonsense
S'

# Sizes against the rules of one program.
bad_sizes='splash-fft --size 32
splash-lu --size 100
splash-lu --size 64 --layout diagonal
splash-water-nsquared --size 100
splash-water-spatial --size 125
pagerank --size 1000
pic --size 48
pic --layout rows
heat --columns 1'

# Options of one line, with class S where no size is given.
with_class() { case $1 in *--size*) echo "$1" ;; *) echo "$1 --class S" ;; esac; }

programs() { # of a build
    for p in nas-cg nas-mg nas-ft nas-bt nas-sp heat sor lu false-sharing splash-fft splash-lu splash-radix \
        splash-water-nsquared splash-water-spatial pagerank pic i-mg i-cg; do [ -x "$out/$1/$p" ] && echo "$p"; done
}

check_results() {
    echo "$runs" | while read -r line; do
        [ -x "$out/$1/${line%% *}" ] || continue
        for threads in 1 2; do
            command="$(with_class "$line") --threads $threads"
            text=$("$out/$1/"$command 2>&1) || echo "$1: $command: $(echo "$text" | tail -n 1)"
            echo "$text" | grep -q '^verification: successful' || echo "$1: $command is not verified"
        done
    done
}

check_refusals() {
    for p in $(programs "$1"); do
        echo "$bad" | while read -r options; do
            text=$("$out/$1/$p" $options 2>/dev/null)
            status=$?
            [ $status -eq 2 ] && [ -z "$text" ] || echo "$1: $p $options gives status $status, not 2 and silence"
        done
        "$out/$1/$p" --help | grep -q '^example:' || echo "$1: $p --help has no example"
    done
    echo "$bad_sizes" | while read -r line; do
        text=$("$out/$1/"$line 2>/dev/null)
        status=$?
        [ $status -eq 2 ] && [ -z "$text" ] || echo "$1: $line gives status $status, not 2 and silence"
    done
    for options in '--size 48' '--size 0' '--verify speed' '--verify'; do # levels need multiples of 32
        "$out/$1/i-mg" $options >/dev/null 2>&1
        [ $? -eq 2 ] || echo "$1: i-mg $options is not refused"
    done
}

# 160 GB and 80 GB: more than the machine has, or this is not checked.
check_memory() {
    for p in heat sor; do
        text=$("$out/$1/$p" --size 100000 2>&1 >/dev/null)
        [ $? -eq 2 ] && echo "$text" | grep -q 'GB of memory, of which' || echo "$1: $p --size 100000: $text"
    done
}

check_unverified() {
    for p in nas-cg nas-mg nas-ft nas-bt nas-sp i-mg i-cg; do
        [ -x "$out/$1/$p" ] || continue
        text=$("$out/$1/$p" --class S --iterations 2) || echo "$1: $p --iterations 2 fails"
        echo "$text" | grep -q '^verification: not checked (non-standard iterations)$' || echo "$1: $p claims too much"
    done
}

# i-cg's file: a saved one gives the same result; a missing, cut, changed or foreign one is refused,
# and nothing is left behind where none can be written.
check_matrix_file() {
    folder=$out/matrix.$1
    rm -rf "$folder" && mkdir "$folder" && cd "$folder" || return
    icg=$out/$1/i-cg
    "$icg" --size 6 --save good >saved.txt || echo "$1: i-cg --save fails"
    "$icg" --matrix good >read.txt || echo "$1: i-cg --matrix fails"
    [ "$(tail -n 1 saved.txt)" = "$(tail -n 1 read.txt)" ] || echo "$1: i-cg --matrix gives another result than --save"
    head -c 1000 good >"cut"
    { head -c 4000 good; printf '!'; tail -c +4002 good; } >changed
    head -c 5000 "$icg" >foreign
    : >empty
    for options in '--matrix missing' '--matrix cut' '--matrix changed' '--matrix foreign' '--matrix empty' '--matrix .' \
        '--save missing/file' '--save .' '--matrix good --save other' '--matrix good --verify order' '--verify speed'; do
        text=$("$icg" --size 6 $options 2>errors)
        status=$?
        [ $status -eq 2 ] && [ -z "$text" ] && [ -s errors ] || echo "$1: i-cg $options gives status $status, not 2 and a sentence"
    done
    [ "$(ls | tr '\n' ' ')" = "changed cut empty errors foreign good read.txt saved.txt " ] || echo "$1: i-cg leaves $(ls | tr '\n' ' ')"
}

check_json() {
    for p in $(programs "$1"); do
        "$out/$1/$p" --class S --json | python3 -c '
import json, sys
run = json.load(sys.stdin)
assert len(run["iteration_seconds"]) == run["iterations"] and run["verification"]["state"] == "successful"
' || echo "$1: $p --json is not right"
    done
}

# The same number of threads gives the same result, to the last digit.
check_repeats() {
    for p in splash-fft splash-lu splash-water-nsquared splash-water-spatial pagerank pic; do
        for run in 1 2; do
            "$out/$1/$p" --class S --threads 3 --iterations 3 --json | sed 's/.*"verification"//' >"$out/repeat$run.txt"
        done
        [ -s "$out/repeat1.txt" ] && cmp -s "$out/repeat1.txt" "$out/repeat2.txt" || echo "$1: $p gives two results"
    done
}

# The manifest says what the programs say: names, default and sizes of the classes.
check_manifest() {
    python3 - "$here/manifest.toml" "$out/$1" <<'PY'
import json, os, subprocess, sys, tomllib
kernels = tomllib.load(open(sys.argv[1], "rb"))["kernel"]
for k in kernels:
    program = os.path.join(sys.argv[2], k["binary"])
    if not os.path.exists(program):
        continue
    text = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
    wanted = ["[%s]" % k["default_class"]] + ["%s = %d" % size for size in k["sizes"].items()]
    print(*(f"{k['name']} --help lacks '{w}'" for w in wanted if w not in text), sep="\n", end="")
    if k["default_size"] != k["sizes"][k["default_class"]]:
        print(f"{k['name']}: default_size is not the default class's")
    for scheme in (k["options_serial"] + k["options_next_touch"], k["options_parallel"], *k.get("variants", {}).values()):
        run = subprocess.run([program, "--class", "S", "--json", *scheme], capture_output=True, text=True)
        if run.returncode or json.loads(run.stdout)["iterations"] != k["iterations"]["S"]:
            print(f"{k['name']} {scheme} does not run as the manifest says")
PY
}

# The calls a kernel makes: rounds 0..n in order, next touch inside round 0 and only when asked for.
check_calls() {
    for p in $(programs listening); do
        calls=$("$out/listening/$p" --class S --iterations 3 --init serial --next-touch 2>&1 >/dev/null |
            grep -v faults | sed 's/next-touch .*/next-touch/' | uniq | tr '\n' ' ')
        [ "$calls" = "iteration 0 next-touch iteration 1 iteration 2 iteration 3 " ] || echo "$p calls: $calls"
        "$out/listening/$p" --class S --next-touch 2>/dev/null | grep -q '^next touch: accepted$' || echo "$p: next touch not accepted"
        "$out/listening/$p" --class S 2>&1 | grep -q 'next-touch' && echo "$p asks for next touch unasked"
    done
}

# Who takes the page faults before the first round: with two threads, the other one takes at least a
# quarter when they initialise in parallel and next to none when the initial thread does.
# (false-sharing has one page.)
check_first_touch() {
    for line in 'nas-cg --class W' 'nas-mg --class W' 'nas-ft --class W' 'nas-bt --class W' 'nas-sp --class W' \
        'heat --class W' 'sor --class A' 'lu --class A' 'lu --class A --schedule affinity' \
        'lu --class A --schedule cyclic --padded' 'splash-fft --class W' 'splash-lu --class W' 'splash-radix --class W' \
        'pagerank --class W' 'pic --class S' 'i-mg --class S'; do
        [ -x "$out/listening/${line%% *}" ] || continue
        for init in serial parallel; do
            faults=$("$out/listening/"$line --iterations 1 --threads 2 --init $init 2>&1 | sed -n 's/^faults //p')
            others=${faults#* }
            total=$((${faults% *} + others))
            case $init in
            serial) [ $((others * 10)) -lt $total ] ;;
            parallel) [ $((others * 4)) -ge $total ] ;;
            esac || echo "$line --init $init: the other thread took $others of $total page faults"
        done
    done
}

check_races() {
    echo "$runs" | while read -r line; do
        [ -x "$out/tsan/${line%% *}" ] || continue
        command="$(with_class "$line") --threads 3"
        case $line in # the same code in each round
        i-mg*) command="$command --iterations 1" ;;
        nas-bt* | nas-sp*) command="$command --iterations 3" ;;
        esac
        LD_PRELOAD=$libomp OMP_TOOL_LIBRARIES=$archer TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
            "$out/tsan/"$command >"$out/tsan.txt" 2>&1
        grep -q '^verification: ' "$out/tsan.txt" || echo "tsan: $command did not run: $(tail -n 1 "$out/tsan.txt")"
        grep -q 'WARNING: ThreadSanitizer' "$out/tsan.txt" && { echo "tsan: $command races"; cat "$out/tsan.txt"; }
    done
}

# check WHAT ON: the checks print what is wrong; silence is success.
check() {
    wrong=$("check_$1" "$2" 2>&1)
    if [ -z "$wrong" ]; then echo "ok: $1 ($2)"; else fail "$1 ($2):"; echo "$wrong"; fi
}

for compiler in gcc clang; do
    has $compiler || { echo "skipped: no $compiler on this machine"; continue; }
    build $compiler -DCMAKE_C_COMPILER=$compiler || continue
    for c in results refusals repeats unverified matrix_file; do check $c $compiler; done
    if [ "$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)" -lt 78000000 ]; then check memory $compiler
    else echo "skipped: memory ($compiler): this machine has 80 GB"; fi
    if has python3; then check json $compiler; else echo "skipped: json ($compiler): no python3"; fi
done
if python3 -c 'import tomllib' 2>/dev/null; then
    if [ -x "$out/gcc/heat" ]; then check manifest gcc; fi
else
    echo "skipped: manifest: no python3 with tomllib (3.11)"
fi

mkdir -p "$out/lib"
if has gcc && gcc -shared -fPIC -I"$here/../include" "$here/tests/listening_homenode.c" "$here/../fortran/homenode_alone.c" -o "$out/lib/libhomenode.so" &&
    build listening -DCMAKE_C_COMPILER=gcc -DHOMENODE_LIB_DIR="$out/lib"; then
    check calls listening
    if grep -q '\[always\]' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null; then
        echo "skipped: first touch: huge pages are always on, one fault stands for 512 pages"
    else
        check first_touch listening
    fi
else
    fail "the build against a libhomenode"
fi

# GCC's libgomp is opaque to ThreadSanitizer; LLVM's libomp explains its barriers to it through
# Archer, and runs code that GCC compiled.
libomp=$(ls /usr/lib/llvm-*/lib/libomp.so.5 2>/dev/null | tail -n 1)
archer=$(dirname "${libomp:-/none/x}")/libarcher.so
if has gcc && [ -e "$archer" ]; then
    build tsan -DCMAKE_C_COMPILER=gcc -DCMAKE_C_FLAGS="-fsanitize=thread -g" -DCMAKE_Fortran_FLAGS="-fsanitize=thread -g" \
        && check races tsan
else
    echo "skipped: races: no gcc or no libarcher.so (Debian: libomp-dev)"
fi

[ $failures -eq 0 ] && echo "all passed" || echo "$failures failed"
[ $failures -eq 0 ]
