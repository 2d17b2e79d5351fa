/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pairs.h"

#include "homenode.h"

#include <inttypes.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A build without libhomenode has none of them, and says so when it is asked for pairs. */
#pragma weak hn_bind_cpu
#pragma weak hn_here
#pragma weak hn_place
#pragma weak hn_verify
#pragma weak hn_node_cpus
#pragma weak hn_last_error

/* One `T:M`; where it ends, or null. */
static const char *parse_pair(const char *text, int32_t *thread, int32_t *memory)
{
    char *end;
    long t = strtol(text, &end, 10);
    if (end == text || *end != ':' || t < 0 || t > 65535)
        return NULL;
    text = end + 1;
    long m = strtol(text, &end, 10);
    if (end == text || m < 0 || m > 65535)
        return NULL;
    *thread = (int32_t)t;
    *memory = (int32_t)m;
    return end;
}

/* A CPU of the thread's node that no earlier pair has. */
static int choose_cpu(const struct kernel_about *about, struct pairs *p, int i)
{
    int32_t cpus[1024], node = p->pair[i].thread;
    size_t count = 0, used = 0;
    int code = hn_node_cpus(node, cpus, sizeof cpus / sizeof *cpus, &count);
    if (code != HN_OK && code != HN_ERANGE)
        return kernel_refuse(about, "--pairs: CPUs of node %" PRId32 ": %s", node, hn_last_error());
    for (int j = 0; j < i; j++)
        used += p->pair[j].thread == node;
    if (used >= count)
        return kernel_refuse(about, "--pairs: node %" PRId32 " has %zu usable CPUs for %zu threads", node, count,
                             used + 1);
    p->pair[i].cpu = cpus[used];
    return KERNEL_RUN;
}

int pairs_parse(const struct kernel_about *about, const struct kernel_options *options, struct pairs *pairs)
{
    const char *text = kernel_text_option("--pairs");
    pairs->count = 0;
    if (!text)
        return KERNEL_RUN;
    if (!hn_place)
        return kernel_refuse(about, "--pairs: this program was built without libhomenode, which places memory");
    for (const char *at = text;; at++) {
        if (pairs->count == MOST_PAIRS)
            return kernel_refuse(about, "--pairs: more than %d", MOST_PAIRS);
        int i = pairs->count++;
        at = parse_pair(at, &pairs->pair[i].thread, &pairs->pair[i].memory);
        if (!at || (*at && *at != ','))
            return kernel_refuse(about, "--pairs %s: pairs of nodes are 0:0,1:1 (thread's:memory's)", text);
        int status = choose_cpu(about, pairs, i);
        if (status != KERNEL_RUN)
            return status;
        if (!*at)
            break;
    }
    if (pairs->count != options->threads)
        return kernel_refuse(about, "--pairs: %d of them and %" PRId32 " threads: a pair a thread", pairs->count,
                             options->threads);
    return KERNEL_RUN;
}

int pairs_bind(const struct kernel_about *about, const struct pairs *pairs)
{
    int status = KERNEL_RUN;
#pragma omp parallel num_threads(pairs->count)
    {
        int32_t cpu = pairs->pair[omp_get_thread_num()].cpu;
        if (hn_bind_cpu(cpu) != HN_OK)
#pragma omp critical
            status = kernel_refuse(about, "--pairs: a thread on CPU %" PRId32 ": %s", cpu, hn_last_error());
    }
    return status;
}

/* The whole pages within. */
static size_t whole(void **begin, void *end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)*begin + page - 1) / page * page, last = (uintptr_t)end / page * page;
    *begin = (void *)first;
    return last > first ? last - first : 0;
}

int pairs_place(const struct kernel_about *about, const struct pairs *pairs, int pair, void *begin, void *end)
{
    int32_t node = pairs->pair[pair].memory;
    size_t length = whole(&begin, end);
    if (length && hn_place(begin, length, node) != HN_OK)
        return kernel_refuse(about, "--pairs: memory on node %" PRId32 ": %s", node, hn_last_error());
    return KERNEL_RUN;
}

int pairs_verify(const struct pairs *pairs, int pair, void *begin, void *end, int64_t *pages)
{
    int32_t node = pairs->pair[pair].memory;
    size_t length = whole(&begin, end);
    hn_placement found = {0};
    if (!length)
        return 1;
    int code = hn_verify(begin, length, node, &found);
    *pages += (int64_t)found.there;
    if (code == HN_OK)
        return 1;
    fprintf(stderr, "of the rows of thread %d, %" PRIu64 " of %" PRIu64 " pages are on node %" PRId32 "%s%s\n", pair,
            found.there, found.pages, node, code == HN_PARTIAL ? "" : ": ", code == HN_PARTIAL ? "" : hn_last_error());
    return 0;
}

int pairs_verify_threads(const struct pairs *pairs)
{
    int right = 1;
#pragma omp parallel num_threads(pairs->count) reduction(&& : right)
    {
        int i = omp_get_thread_num();
        int32_t cpu = -1, node = -1;
        right = hn_here(&cpu, &node) == HN_OK && cpu == pairs->pair[i].cpu && node == pairs->pair[i].thread;
        if (!right)
            fprintf(stderr, "thread %d is on CPU %" PRId32 " of node %" PRId32 "\n", i, cpu, node);
    }
    return right;
}
