/* Preloaded into a program in the lab: where the pages of its large arrays are, and, if asked,
 * where they begin.
 *
 * When the program is the one that HOMES_OF names, appends to the file that HOMES names, a line for
 * each array when it is freed: the word `free`, its length in bytes, how many of that length came
 * before it, its address, the offset of its first whole page, then node and count of each stretch
 * of whole pages, -1 for those not there. The same with a number in the place of `free` at those
 * iterations that HOMES_AT lists (marks.c tells of them).
 *
 * HOMES_PLACE=far: each array's quarters are put on nodes 2, 3, 0, 1, with no memory policy left
 * behind. Block distributions want them on 0, 1, 2, 3.
 *
 * HOMES_PACE: at each iteration its number and how many pages NUMA balancing has moved so far are
 * appended to the file of this name.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, SMALLEST = 64 << 10, CHUNK = 1024, MOST = 256, NODES = 4 };
enum { DEFAULT = 0, BIND = 2, MOVE = 2 }; /* MPOL_DEFAULT, MPOL_BIND, MPOL_MF_MOVE */

struct array {
    char *at;
    size_t bytes, number;
};

static struct array arrays[MOST];
static size_t known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *file_of(const char *variable)
{
    const char *file = getenv(variable), *of = getenv("HOMES_OF");
    return of && !strcmp(of, program_invocation_short_name) ? file : NULL;
}

static void or_leave(long failed, const char *what)
{
    if (failed) {
        perror(what);
        _exit(99);
    }
}

static char *first_page(const struct array *a)
{
    return (char *)(((uintptr_t)a->at + PAGE - 1) / PAGE * PAGE);
}

static char *end_of_pages(const struct array *a)
{
    return (char *)(((uintptr_t)a->at + a->bytes) / PAGE * PAGE);
}

/* The policy goes again, so that nothing keeps the pages from moving. */
static void place_far(const struct array *a)
{
    char *first = first_page(a);
    size_t pages = (size_t)(end_of_pages(a) - first) / PAGE;
    for (size_t quarter = 0; quarter < NODES; quarter++) {
        char *from = first + pages * quarter / NODES * PAGE, *to = first + pages * (quarter + 1) / NODES * PAGE;
        unsigned long mask = 1ul << (quarter + 2) % NODES;
        or_leave(syscall(SYS_mbind, from, to - from, BIND, &mask, 64ul, MOVE), "mbind to a node");
        for (volatile char *page = from; page < to; page += PAGE)
            *page = *page;
        or_leave(syscall(SYS_mbind, from, to - from, DEFAULT, NULL, 0ul, 0), "mbind by default");
    }
}

static void tell(FILE *out, const char *when, const struct array *a)
{
    char *first = first_page(a), *end = end_of_pages(a);
    fprintf(out, "%s %zu %zu %p %zu", when, a->bytes, a->number, (void *)a->at, (size_t)(first - a->at));
    int last = -2;
    size_t count = 0;
    for (char *at = first; at < end; at += CHUNK * (size_t)PAGE) {
        void *pages[CHUNK];
        int node[CHUNK];
        size_t n = 0;
        for (char *page = at; page < end && n < CHUNK; page += PAGE)
            pages[n++] = page;
        or_leave(syscall(SYS_move_pages, 0, n, pages, NULL, node, 0), "move_pages");
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
}

static FILE *append(const char *file)
{
    FILE *out = fopen(file, "a");
    or_leave(!out, file);
    return out;
}

static int is_listed(const char *list, unsigned number)
{
    for (char *end; list && *list; list = *end ? end + 1 : end)
        if (strtoul(list, &end, 10) == number)
            return 1;
    return 0;
}

static void tell_pace(const char *file, unsigned iteration)
{
    unsigned long long moved = 0;
    char line[256];
    FILE *counters = fopen("/proc/vmstat", "r");
    or_leave(!counters, "/proc/vmstat");
    while (fgets(line, sizeof line, counters) && sscanf(line, "numa_pages_migrated %llu", &moved) != 1) {
    }
    fclose(counters);
    FILE *out = append(file);
    fprintf(out, "%u %llu\n", iteration, moved);
    fclose(out);
}

/* Iteration `iteration` begins: the initial thread is alone. */
void homes_at(unsigned iteration)
{
    const char *file = file_of("HOMES"), *pace = file_of("HOMES_PACE");
    if (pace)
        tell_pace(pace, iteration);
    if (!file || !is_listed(getenv("HOMES_AT"), iteration))
        return;
    char when[16];
    snprintf(when, sizeof when, "%u", iteration);
    FILE *out = append(file);
    for (size_t i = 0; i < known; i++)
        if (arrays[i].at)
            tell(out, when, &arrays[i]);
    fclose(out);
}

static void note(void *memory, size_t bytes)
{
    const char *place = getenv("HOMES_PLACE");
    if (!file_of("HOMES"))
        return;
    struct array a = {memory, bytes, 0};
    pthread_mutex_lock(&lock);
    or_leave(known == MOST, "more arrays than are kept");
    for (size_t i = 0; i < known; i++)
        a.number += arrays[i].bytes == bytes;
    arrays[known++] = a;
    pthread_mutex_unlock(&lock);
    if (place && !strcmp(place, "far"))
        place_far(&a);
}

static void forget(void *memory)
{
    struct array a = {NULL, 0, 0};
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < known; i++)
        if (arrays[i].at == memory) {
            a = arrays[i];
            arrays[i].at = NULL;
        }
    pthread_mutex_unlock(&lock);
    if (a.at) {
        FILE *out = append(file_of("HOMES"));
        tell(out, "free", &a);
        fclose(out);
    }
}

void *malloc(size_t bytes)
{
    static void *(*next)(size_t);
    if (!next)
        next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    void *memory = next(bytes);
    if (memory && bytes >= SMALLEST)
        note(memory, bytes);
    return memory;
}

void free(void *memory)
{
    static void (*next)(void *);
    static __thread int inside;
    if (!next)
        next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    if (memory && known && !inside) {
        inside = 1;
        forget(memory);
        inside = 0;
    }
    next(memory);
}
