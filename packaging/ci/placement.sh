#!/bin/sh
# Tells a merge request what it does to memory placement: writes placement.md, and ends with
# homenode's status (0 good, 1 a condition is broken, 125 homenode failed).
#
#   placement.sh APP [ARG]...           a program, built with homenode-cc for PLACEMENT_ON=simulator
#   placement.sh kernel:NAME [WORD]...  one of homenode's programs, with words of 'homenode compare'
#
# PLACEMENT_ON       simulator (record once, simulate) or lab (a real kernel on four virtual nodes)
# PLACEMENT_FAIL_IF  the condition that fails the job
# PLACEMENT_MACHINE  the machine that is simulated
set -u
[ $# -gt 0 ] || {
    echo "placement.sh: no program is named; usage: placement.sh APP [ARG]..." >&2
    exit 2
}
on=${PLACEMENT_ON:-simulator}
fail_if=${PLACEMENT_FAIL_IF:-first-touch:remote>10}
case $1 in
kernel:*) ;;
*) set -- -- "$@" ;;
esac
[ "$on" = lab ] || set -- -m "${PLACEMENT_MACHINE:-2s-xeon}" "$@"
homenode compare --on "$on" -p first-touch -p next-touch --markdown --fail-if "$fail_if" "$@" >placement.table
status=$?
{
    case $status in
    0) echo "### Memory placement: good" ;;
    1) echo "### Memory placement: \`$fail_if\` holds" ;;
    *) echo "### Memory placement: not measured, homenode ended with status $status" ;;
    esac
    echo
    cat placement.table
} >placement.md
rm -f placement.table
cat placement.md
exit $status
