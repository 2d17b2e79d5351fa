/* `--pairs T:M,…`: thread i runs on node T of pair i, and the rows that it updates lie on node M,
 * through the C API of libhomenode (bind, place, here, verify: what Robertson and Rendell ask for
 * in section 2).
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef KERNEL_PAIRS_H
#define KERNEL_PAIRS_H

#include "options.h"

#include <stddef.h>

#define MOST_PAIRS 64

struct pairs {
    int count; /* 0: not asked for */
    struct {
        int32_t thread, memory; /* nodes */
        int32_t cpu;            /* of the thread's node, another one for each thread there */
    } pair[MOST_PAIRS];
};

/* What --pairs said, checked against the machine and the number of threads; KERNEL_RUN or an exit
 * status. */
int pairs_parse(const struct kernel_about *about, const struct kernel_options *options, struct pairs *pairs);

/* Binds each thread of the team to its CPU. */
int pairs_bind(const struct kernel_about *about, const struct pairs *pairs);

/* The whole pages of [begin, end), which are not touched yet, are to come from the node of
 * `pair`. */
int pairs_place(const struct kernel_about *about, const struct pairs *pairs, int pair, void *begin, void *end);

/* Whether these pages are there; counts them. Says what is astray. */
int pairs_verify(const struct pairs *pairs, int pair, void *begin, void *end, int64_t *pages);

/* Whether each thread of the team is on its CPU. Says who is not. */
int pairs_verify_threads(const struct pairs *pairs);

#endif
