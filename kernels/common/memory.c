/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "memory.h"

#include <fcntl.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The beginning of a file as text; nothing of it is on the heap, whose layout must not depend on
 * what it says. */
static int read_text(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    size_t used = 0;
    ssize_t more;
    while (used < size - 1 && (more = read(file, text + used, size - 1 - used)) > 0)
        used += (size_t)more;
    close(file);
    text[used] = 0;
    return used > 0;
}

/* The number in a file that holds one, or `otherwise` ("max" in a control group's limit). */
static double read_number(const char *path, double otherwise)
{
    char text[64], *end;
    if (!read_text(path, text, sizeof text))
        return otherwise;
    double value = strtod(text, &end);
    return end == text || isnan(value) ? otherwise : value;
}

static double read_available(void)
{
    char text[4096];
    const char *line = read_text("/proc/meminfo", text, sizeof text) ? strstr(text, "MemAvailable:") : NULL;
    return line ? 1024.0 * strtod(line + strlen("MemAvailable:"), NULL) : INFINITY;
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
