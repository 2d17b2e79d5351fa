/* splash-radix: sorts whole numbers by their digits, the least significant first.
 *
 * Source: G. E. Blelloch et al., A Comparison of Sorting Algorithms for the Connection Machine
 * CM-2, SPAA 1991; S. C. Woo et al., The SPLASH-2 Programs, ISCA 1995, section 3 (RADIX): radix
 * 1024, keys below 524288. Tao, Schulz and Karl use 262144 keys. For each digit every thread counts
 * the digits of its keys; from all counts follows where each thread's keys of each digit go; then
 * it writes its keys there, which scatters them over the memory of all threads.
 *
 * A round makes the keys anew, so that no round sorts what is sorted already (ours), and sorts
 * them, in two passes. All keys are equally probable (ours).
 *
 * Verified by order and by how often each key occurs, against the keys made again from their
 * formula.
 *
 * Placement. Each thread makes and reads neighbouring keys, but a pass writes to places that depend
 * on the keys: with t threads (t - 1) / t of its stores are remote under any placement.
 * `--init parallel`: each thread touches its share.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "homenode.h"
#include "noise.h"
#include "options.h"
#include "places.h"
#include "report.h"
#include "share.h"

#include <omp.h>
#include <stdlib.h>

#define RADIX_BITS 10
#define RADIX (1 << RADIX_BITS)
#define KEYS_BELOW (1 << 19)
#define PASSES 2 /* digits of a key; even, so that the sorted keys end where they began */

static double bytes(int64_t size, int letter)
{
    (void)letter;
    return 2.0 * sizeof(uint32_t) * (double)size;
}

static const struct kernel_about about = {
    .name = "splash-radix",
    .summary = "SPLASH-2 RADIX, integer radix sort",
    .size_meaning = "keys",
    .classes_from = "keys (S as in Tao, Schulz and Karl and in SPLASH-2)",
    .example = "splash-radix --size 1000000 --threads 4 --init serial --next-touch",
    .classes = {{'S', 1 << 18, 10}, {'W', 1 << 20, 10}, {'A', 1 << 24, 10}, {'B', 1 << 27, 10}},
    .default_class = 'A',
    .least_size = 1,
    .most_size = INT32_MAX,
    .bytes = bytes,
};

struct sort {
    int64_t n;
    int threads;
    uint32_t *keys, *other; /* a pass goes from one to the other */
    struct places places;   /* by digit */
};

static uint32_t key(int32_t round, int64_t place)
{
    return (uint32_t)(noise_bits(((uint64_t)round << 32) + (uint64_t)place) % KEYS_BELOW);
}

static int digit(uint32_t key, int pass)
{
    return (int)(key >> (pass * RADIX_BITS)) & (RADIX - 1);
}

static void make_keys(const struct sort *s, int32_t round)
{
    struct share mine = share_of(s->n, s->threads, omp_get_thread_num());
    for (int64_t i = mine.first; i < mine.end; i++)
        s->keys[i] = key(round, i);
}

static void count_digits(const struct sort *s, const uint32_t *from, int pass)
{
    int me = omp_get_thread_num();
    struct share mine = share_of(s->n, s->threads, me);
    int32_t *count = places_begin(&s->places, me);
    for (int64_t i = mine.first; i < mine.end; i++)
        count[digit(from[i], pass)]++;
}

static void move_keys(const struct sort *s, const uint32_t *restrict from, uint32_t *restrict to, int pass)
{
    int me = omp_get_thread_num();
    struct share mine = share_of(s->n, s->threads, me);
    int32_t *restrict next = s->places.count + (int64_t)me * s->places.apart;
    for (int64_t i = mine.first; i < mine.end; i++)
        to[next[digit(from[i], pass)]++] = from[i];
#pragma omp barrier
}

static void sort_new_keys(const struct sort *s, int32_t round)
{
#pragma omp parallel
    {
        uint32_t *from = s->keys, *to = s->other;
        make_keys(s, round);
        for (int pass = 0; pass < PASSES; pass++) {
            count_digits(s, from, pass);
            places_find(&s->places, omp_get_thread_num());
            move_keys(s, from, to, pass);
            uint32_t *swap = from;
            from = to;
            to = swap;
        }
    }
}

static void iterate(const struct sort *s, const struct kernel_options *options)
{
    for (int32_t k = 0; k < options->iterations; k++) {
        kernel_mark(k);
        hn_iteration((uint32_t)k);
        if (k == 0 && options->next_touch) {
            kernel_note_next_touch(hn_next_touch(s->keys, (size_t)s->n * sizeof *s->keys));
            kernel_note_next_touch(hn_next_touch(s->other, (size_t)s->n * sizeof *s->other));
        }
        sort_new_keys(s, k);
    }
    kernel_mark(options->iterations);
    hn_iteration((uint32_t)options->iterations);
}

static struct sort make(const struct kernel_options *options)
{
    struct sort s = {.n = options->size, .threads = options->threads};
    size_t n = (size_t)s.n;
    s.keys = kernel_allocate(n, sizeof *s.keys, "the keys");
    s.other = kernel_allocate(n, sizeof *s.other, "the moved keys");
    s.places = places_make(RADIX, s.threads);
#pragma omp parallel for schedule(static) if (!options->serial_init)
    for (int64_t i = 0; i < s.n; i++) {
        s.keys[i] = 0;
        s.other[i] = 0;
    }
    return s;
}

/* Places that are out of order, and keys that are too many or too few. */
static int64_t count_wrong(const struct sort *s, int32_t last_round)
{
    int32_t *times = kernel_allocate(KEYS_BELOW, sizeof *times, "the check");
    int64_t wrong = 0;
    for (int64_t k = 0; k < KEYS_BELOW; k++)
        times[k] = 0;
    for (int64_t i = 0; i < s->n; i++) {
        times[key(last_round, i)]++;
        if (s->keys[i] < KEYS_BELOW)
            times[s->keys[i]]--;
        else
            wrong++;
        wrong += i > 0 && s->keys[i - 1] > s->keys[i];
    }
    for (int64_t k = 0; k < KEYS_BELOW; k++)
        wrong += times[k] != 0;
    free(times);
    return wrong;
}

int main(int argc, char **argv)
{
    struct kernel_options options;
    int status = kernel_parse(&about, argc, argv, &options);
    if (status != KERNEL_RUN)
        return status;
    kernel_start(&about, &options);
    struct sort s = make(&options);
    iterate(&s, &options);
    int64_t wrong = count_wrong(&s, options.iterations - 1);
    free(s.keys);
    free(s.other);
    places_free(&s.places);
    return kernel_verify_bound("keys out of order, missing or too many", (double)wrong, 0.0);
}
