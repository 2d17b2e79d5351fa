/* Memory of the first node of which each of four threads then uses a quarter, again and again.
 *
 * quarters KIB UNITS SECONDS
 *
 * So many units of so many KiB, aligned as long as they are, in huge pages if they are 2 MiB long.
 * The team comes six times, or until most of what belongs elsewhere has left the first node, for so
 * many seconds at most.
 *
 * Prints the node of each unit, -1 if its pages are on several; for each quarter how many of its
 * pages are on nodes 0 to 3; kB in huge pages before the team came, and at the end, and how many
 * words are not what they should be.
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
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, NODES = 4, ROUNDS = 6, STEP = 128 };

static char *memory;
static size_t unit, units, bytes;

/* kB of the memory's mappings that are in huge pages. */
static long in_huge_pages(void)
{
    char line[512];
    long kb = 0;
    int inside = 0;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (smaps && fgets(line, sizeof line, smaps)) {
        unsigned long low, high;
        long some;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            inside = low < (uintptr_t)memory + bytes && high > (uintptr_t)memory;
        if (inside && sscanf(line, "AnonHugePages: %ld kB", &some) == 1)
            kb += some;
    }
    if (smaps)
        fclose(smaps);
    return kb;
}

/* The node of each page; those that cannot be asked for count as the first's. */
static void look(int *node)
{
    size_t pages = bytes / PAGE;
    void **at = malloc(pages * sizeof *at);
    for (size_t i = 0; i < pages; i++)
        at[i] = memory + i * PAGE;
    if (syscall(SYS_move_pages, 0, pages, at, NULL, node, 0)) {
        perror("move_pages");
        exit(1);
    }
    for (size_t i = 0; i < pages; i++)
        if (node[i] < 0 || node[i] >= NODES)
            node[i] = 0;
    free(at);
}

/* Three pages of five that belong elsewhere are elsewhere. */
static int most_have_left(int *node)
{
    size_t pages = bytes / PAGE, left = 0;
    look(node);
    for (size_t i = 0; i < pages; i++)
        left += node[i] != 0;
    return left * 5 >= pages * (NODES - 1) / NODES * 3;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void come(uint64_t *a, size_t words)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < words; i += STEP)
        a[i] += 3;
}

static void print(int *node)
{
    look(node);
    for (size_t u = 0; u < units; u++) {
        size_t from = u * unit / PAGE, to = from + unit / PAGE;
        int one = node[from];
        for (size_t i = from; i < to; i++)
            one = node[i] == one ? one : -1;
        printf(u ? " %d" : "%d", one);
    }
    for (size_t q = 0; q < NODES; q++) {
        size_t at[NODES] = {0};
        for (size_t i = bytes / PAGE * q / NODES; i < bytes / PAGE * (q + 1) / NODES; i++)
            at[node[i]]++;
        printf("\n%zu %zu %zu %zu", at[0], at[1], at[2], at[3]);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    unit = strtoul(argv[1], NULL, 10) << 10;
    units = strtoul(argv[2], NULL, 10);
    bytes = unit * units;
    double seconds = atof(argv[3]), begin = now();
    size_t words = bytes / sizeof(uint64_t);
    int *node = malloc(bytes / PAGE * sizeof *node);
    memory = aligned_alloc(unit, bytes);
    if (!node || !memory || (unit == 2 << 20 && madvise(memory, bytes, MADV_HUGEPAGE))) {
        perror("memory");
        return 1;
    }
    uint64_t *a = (uint64_t *)memory, rounds = 0;
    for (size_t i = 0; i < words; i++)
        a[i] = i;
    long huge = in_huge_pages(), wrong = 0;
    while (rounds < ROUNDS || (now() - begin < seconds && (rounds % 64 || !most_have_left(node)))) {
        come(a, words);
        rounds++;
    }
    for (size_t i = 0; i < words; i++)
        wrong += a[i] != i + (i % STEP ? 0 : 3 * rounds);
    print(node);
    printf("%ld %ld %ld\n", huge, in_huge_pages(), wrong);
    free(memory);
    free(node);
    return 0;
}
