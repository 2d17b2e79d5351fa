/* A libhomenode that only writes down, on standard error, what a kernel calls: `iteration K`,
 * `next-touch BYTES`; and, as round 0 begins, which threads have taken page faults so far:
 * `faults INITIAL OTHERS`. Whoever touches a page first takes its fault, so this tells serial from
 * parallel initialisation on a machine with one node.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "homenode.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Minor faults of one thread: the eighth number behind the name in parentheses (proc_pid_stat(5),
 * field 10). */
static long faults_of(const char *thread)
{
    char path[300];
    long faults = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %ld", &faults) != 1)
        faults = 0;
    fclose(file);
    return faults;
}

static void report_faults(void)
{
    long initial = 0, others = 0;
    DIR *threads = opendir("/proc/self/task");
    if (!threads)
        return;
    for (struct dirent *entry; (entry = readdir(threads));) {
        if (entry->d_name[0] == '.')
            continue;
        *(atol(entry->d_name) == (long)getpid() ? &initial : &others) += faults_of(entry->d_name);
    }
    closedir(threads);
    fprintf(stderr, "faults %ld %ld\n", initial, others);
}

int hn_iteration(uint32_t number)
{
    if (number == 0)
        report_faults();
    fprintf(stderr, "iteration %u\n", (unsigned)number);
    return HN_OK;
}

int hn_next_touch(const void *address, size_t length)
{
    if (!address || !length)
        return HN_EINVAL;
    fprintf(stderr, "next-touch %zu\n", length);
    return HN_OK;
}

const char *hn_message(int code)
{
    return code == HN_OK ? "done" : "an argument makes no sense";
}
