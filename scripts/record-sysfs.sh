#!/bin/sh
# Writes what 'homenode measure' reads of /sys and /proc into one text file, for fixtures/sysfs and
# 'homenode measure --tree':
#
#   scripts/record-sysfs.sh > mine.tree
#
# "== PATH" begins a file, what follows is its contents. Nothing that names a person, a process or a
# serial number is read.
set -u

put() {
    [ -r "$1" ] && [ -f "$1" ] || return 0
    printf '== %s\n' "${1#/}"
    cat "$1" 2>/dev/null
}

# Some lines of a file.
lines() {
    printf '== %s\n' "${1#/}"
    grep -E "$2" "$1"
}

lines /proc/self/status '^(Cpus|Mems)_allowed_list:'
lines /proc/meminfo '^Mem(Total|Free|Available):'
printf '== proc/cpuinfo\n'
grep -E '^(vendor_id|model name|CPU implementer|flags)' /proc/cpuinfo | sed 's/^\(flags[^:]*:\).*\( hypervisor\).*/\1\2/' |
    grep -E -v '^flags.*: .{40}' | sort -u
put /proc/loadavg
put /proc/sys/kernel/osrelease
put /proc/sys/kernel/numa_balancing
put /sys/kernel/mm/transparent_hugepage/enabled

cpus=/sys/devices/system/cpu
put $cpus/online
put $cpus/isolated
put $cpus/smt/control
for cpu in "$cpus"/cpu[0-9]*; do
    put "$cpu/topology/core_cpus_list"
    put "$cpu/topology/thread_siblings_list"
    put "$cpu/cpufreq/scaling_governor"
    for cache in "$cpu"/cache/index*; do
        for name in level type size shared_cpu_list; do put "$cache/$name"; done
    done
done

nodes=/sys/devices/system/node
put $nodes/online
for node in "$nodes"/node[0-9]*; do
    put "$node/cpulist"
    put "$node/distance"
    [ -r "$node/meminfo" ] &&
        lines "$node/meminfo" '(MemTotal|MemFree|Dirty|Inactive\(file\)):'
    # Links that tell of CPUs which are off-line, too.
    for cpu in "$node"/cpu[0-9]*; do [ -e "$cpu" ] && printf '== %s\n' "${cpu#/}"; done
    for name in read_latency read_bandwidth; do put "$node/access0/initiators/$name"; done
    for near in "$node"/access0/initiators/node[0-9]*; do [ -e "$near" ] && printf '== %s\n' "${near#/}"; done
done
exit 0
