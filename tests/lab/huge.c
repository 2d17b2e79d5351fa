/* Memory in huge pages of the first node, which a team then uses: where each of them is in the end, and how much is in huge pages.
 *
 * A line for each 2 MiB: the node, or -1 if its pages are not all on one. Then kB in huge pages before the team came and in the end,
 * and how many words are not what they should be.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20, UNITS = 8, ROUNDS = 6 };

static const size_t words = (size_t)UNITS * HUGE / sizeof(uint64_t);

/* kB of the mapping at `at` that are in huge pages. */
static long in_huge_pages(const void *at)
{
    char line[512];
    long kb = 0;
    int inside = 0;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (smaps && fgets(line, sizeof line, smaps)) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            inside = low < (uintptr_t)at + (size_t)UNITS * HUGE && high > (uintptr_t)at;
        long some;
        if (inside && sscanf(line, "AnonHugePages: %ld kB", &some) == 1)
            kb += some;
    }
    if (smaps)
        fclose(smaps);
    return kb;
}

static int node_of(char *unit)
{
    void *pages[HUGE / PAGE];
    int node[HUGE / PAGE];
    for (int i = 0; i < HUGE / PAGE; i++)
        pages[i] = unit + i * PAGE;
    if (syscall(SYS_move_pages, 0, (unsigned long)(HUGE / PAGE), pages, NULL, node, 0))
        return -1;
    for (int i = 1; i < HUGE / PAGE; i++)
        if (node[i] != node[0])
            return -1;
    return node[0];
}

int main(void)
{
    uint64_t *a = aligned_alloc(HUGE, words * sizeof *a);
    if (!a || madvise(a, words * sizeof *a, MADV_HUGEPAGE)) {
        perror("memory");
        return 1;
    }
    for (size_t i = 0; i < words; i++)
        a[i] = i;
    long before = in_huge_pages(a), wrong = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < words; i += PAGE / sizeof *a / 4)
            a[i] += 3;
    }
    for (size_t i = 0; i < words; i++)
        wrong += a[i] != i + (i % (PAGE / sizeof *a / 4) ? 0 : 3 * ROUNDS);
    for (int unit = 0; unit < UNITS; unit++)
        printf("%d\n", node_of((char *)a + (size_t)unit * HUGE));
    printf("%ld %ld %ld\n", before, in_huge_pages(a), wrong);
    free(a);
    return 0;
}
