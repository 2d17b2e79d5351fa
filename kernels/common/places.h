/* The middle of a counting sort by several threads: from how many things of each kind each thread
 * has, where each thread's go. Things of a smaller kind come first; of one kind, those of the
 * threads in order, so the sort is stable.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KERNEL_PLACES_H
#define KERNEL_PLACES_H

#include <stdint.h>

struct places {
    int64_t kinds;
    int64_t apart; /* numbers from one thread's counts to the next's: whole pages */
    int threads;
    int32_t *count; /* [thread][apart]: first how many, then where the thread's next one goes */
    int32_t *total; /* [thread]: things whose kind is in the thread's share of kinds */
};

struct places places_make(int64_t kinds, int threads);
void places_free(struct places *p);

/* The calling thread's counts, all zero. */
int32_t *places_begin(const struct places *p, int thread);

/* Turns counts into places. All threads of the team call it, after their counts; it begins and ends
 * with a barrier. */
void places_find(const struct places *p, int thread);

/* Once all have been put where they go: things [places_end(kind - 1), places_end(kind)) are of a
 * kind. */
int32_t places_end(const struct places *p, int64_t kind);

#endif
