/* false-sharing: each thread counts in a counter of its own, and the counters lie side by side in
 * one cache line.
 *
 * Not from a paper: a test of recorders and viewers, which must show a line that many threads write
 * and none shares. `--padded` puts each counter into a pair of lines of its own (processors fetch
 * lines in pairs); the page is still shared, and next touch gives it to whoever comes first.
 *
 * Verified by the counters: each must hold exactly what its thread did.
 *
 * Placement. One page, or a few when padded: `--init` says who touches them first.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "homenode.h"
#include "options.h"
#include "report.h"

#include <omp.h>
#include <stdlib.h>

#define PAGE 4096
#define PADDED_STRIDE 16 /* counters of 8 bytes: two lines of 64 bytes */

static const struct kernel_about about = {
    .name = "false-sharing",
    .summary = "threads increment neighbouring counters in one cache line",
    .size_meaning = "increments a thread and iteration",
    .classes_from = "increments",
    .padded_meaning = "give each counter two cache lines of its own (128 bytes)",
    .example = "false-sharing --size 100000 --threads 4 --padded",
    .classes = {{'S', 10000, 10}, {'W', 100000, 10}, {'A', 1000000, 10}, {'B', 10000000, 10}},
    .default_class = 'W',
    .least_size = 1,
    .most_size = INT64_C(1000000000000),
    .extras = EXTRA_PADDED,
};

struct counters {
    int64_t stride;
    size_t bytes; /* whole pages, so that next touch has something to move */
    uint64_t *first;
};

/* Each thread clears its own counter, or the initial thread all of them. */
static struct counters make(const struct kernel_options *options)
{
    struct counters c = {.stride = options->padded ? PADDED_STRIDE : 1};
    size_t used = (size_t)(options->threads * c.stride) * sizeof *c.first;
    c.bytes = (used + PAGE - 1) / PAGE * PAGE;
    c.first = kernel_allocate_aligned(PAGE, c.bytes, 1, "the counters");
#pragma omp parallel for schedule(static) if (!options->serial_init)
    for (int32_t t = 0; t < options->threads; t++)
        c.first[t * c.stride] = 0;
    return c;
}

/* Volatile: every increment must reach memory, or the compiler adds them up in a register. */
static void count(const struct counters *c, int64_t increments)
{
#pragma omp parallel
    {
        volatile uint64_t *mine = c->first + omp_get_thread_num() * c->stride;
        for (int64_t i = 0; i < increments; i++)
            *mine += 1;
    }
}

static void iterate(const struct counters *c, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch)
            kernel_note_next_touch(hn_next_touch(c->first, c->bytes));
        count(c, options->size);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

static int verify(const struct counters *c, const struct kernel_options *options)
{
    uint64_t expected = (uint64_t)options->iterations * (uint64_t)options->size;
    double wrong = 0.0;
    for (int32_t t = 0; t < options->threads; t++)
        wrong += c->first[t * c->stride] != expected;
    return kernel_verify_bound("counters with a wrong count", wrong, 0.0);
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    struct counters c = make(&options);
    iterate(&c, &options);
    status = verify(&c, &options);
    free(c.first);
    return status;
}
