/* Preloaded into a program in the lab: where the pages of its large arrays are when it frees them.
 *
 * Appends to the file that HOMES names, when the program is the one that HOMES_OF names: a line for each array, its length in
 * bytes, the offset of the first whole page, then node and count of each stretch of whole pages, -1 for those not there.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, SMALLEST = 64 << 10, CHUNK = 1024 };

static void tell(void *array)
{
    const char *file = getenv("HOMES"), *of = getenv("HOMES_OF");
    size_t bytes = malloc_usable_size(array);
    if (!file || !of || strcmp(of, program_invocation_short_name) || bytes < SMALLEST)
        return;
    uintptr_t first = ((uintptr_t)array + PAGE - 1) / PAGE * PAGE, end = ((uintptr_t)array + bytes) / PAGE * PAGE;
    FILE *out = fopen(file, "a");
    if (!out)
        return;
    fprintf(out, "%zu %zu", bytes, (size_t)(first - (uintptr_t)array));
    int last = -2;
    size_t count = 0;
    for (uintptr_t at = first; at < end; at += CHUNK * (uintptr_t)PAGE) {
        void *pages[CHUNK];
        int node[CHUNK];
        size_t n = 0;
        for (uintptr_t page = at; page < end && n < CHUNK; page += PAGE)
            pages[n++] = (void *)page;
        if (syscall(SYS_move_pages, 0, n, pages, NULL, node, 0)) {
            perror("move_pages");
            exit(99);
        }
        for (size_t i = 0; i < n; i++) {
            int here = node[i] < 0 ? -1 : node[i];
            if (here != last && count) {
                fprintf(out, " %d %zu", last, count);
                count = 0;
            }
            last = here;
            count++;
        }
    }
    if (count)
        fprintf(out, " %d %zu", last, count);
    fputc('\n', out);
    fclose(out);
}

void free(void *array)
{
    static void (*next)(void *);
    static __thread int inside;
    if (!next)
        next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    if (array && !inside) {
        inside = 1;
        tell(array);
        inside = 0;
    }
    next(array);
}
