/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "memory.h"

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The number in a file that holds one, or `otherwise` ("max" in a control group's limit). */
static double read_number(const char *path, double otherwise)
{
    double value;
    FILE *file = fopen(path, "r");
    if (!file)
        return otherwise;
    int read = fscanf(file, "%lf", &value);
    fclose(file);
    return read == 1 ? value : otherwise;
}

static double read_available(void)
{
    char line[128];
    double kib = INFINITY;
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file)
        return kib;
    while (isinf(kib) && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf kB", &kib) != 1)
            kib = INFINITY;
    fclose(file);
    return 1024.0 * kib;
}

double kernel_available_bytes(void)
{
    double limit = read_number("/sys/fs/cgroup/memory.max", INFINITY);
    double group = limit - read_number("/sys/fs/cgroup/memory.current", 0.0);
    return fmin(read_available(), fmax(group, 0.0));
}

void kernel_deal_pages(void *array, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)array, end = first + bytes;
    uintptr_t begin = first / page * page;
    int64_t pages = (int64_t)((end - begin + page - 1) / page);
#pragma omp parallel for schedule(static, 1)
    for (int64_t p = 0; p < pages; p++) {
        uintptr_t place = begin + (uintptr_t)p * page;
        *(volatile unsigned char *)(place < first ? first : place) = 0;
    }
}
